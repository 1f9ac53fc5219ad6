"""Records that were set aside: what is kept of each, and what a place that keeps them can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from millstream.spec.base import Spec

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.sink import SinkIdentity
    from millstream.connectors.source import Problem

COLUMNS = (
    "query STRING, source STRING, topic STRING, partition INT, `offset` BIGINT, file STRING, "
    "timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, reason STRING, batch_id BIGINT, at TIMESTAMP, "
    "expectation STRING"
)
"""The columns: which query met the record, where it stands, its bytes, the reason, and when."""

# A few letters of a batch, in bytes: so many may come to the driver where that is cheaper than a job of tasks.
FEW = 64 * 1024 * 1024


@dataclass(frozen=True)
class Letter:
    """One record that was set aside.

    `value` and `key` are the bytes as they came, None for null. `topic`, `partition` and `offset` are None for
    records of files, `file` for records of topics.
    """

    query: str
    source: str
    topic: str | None
    partition: int | None
    offset: int | None
    file: str | None
    timestamp: datetime | None
    key: bytes | None
    value: bytes | None
    reason: str
    batch_id: int
    at: datetime
    headers: list[dict[str, str | bytes | None]] | None = None
    """Each with its `key` and `value`; None where the record has none, or they were not read."""
    expectation: str | None = None
    """The expectation that the row broke, `a, b` for several; None for a malformed record."""


class Keeper(ABC):
    """Keeps the letters of one query. A batch that is kept already is not kept again."""

    @abstractmethod
    def open(self, spark: SparkSession) -> None:
        """Get ready, once a start. Raises `NotReady` or `Outage` where letters could not be kept."""

    @abstractmethod
    def keep(self, frame: DataFrame, batch_id: int, size: int) -> None:
        """Keep one batch's letters, in the columns of `COLUMNS`, together with the batch's number, or nothing.

        `size` is about how many bytes they are. Raises as a sink's writer does.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of connections. Called once, also after a failure."""


class Box(Spec, ABC):
    """Base of every place that keeps dead letters. A kind is a subclass in `connectors/<system>/letters.py`."""

    kind: ClassVar[str]
    """The key that names this kind in a spec."""
    main: ClassVar[str]
    """The field that a bare value stands for."""
    plain: ClassVar[bool] = False
    """Is it the kind that a bare path below `dead_letters` means? One is."""

    @abstractmethod
    def keeper(self, identity: SinkIdentity) -> Keeper:
        """The object that keeps. Its module is imported here and not at the top: it may be heavy."""

    @abstractmethod
    def all(self) -> list[Letter]:
        """Every letter there is, in any order, without Spark; none before the first was kept."""

    @abstractmethod
    def purge(self, before: datetime | None, source: str | None) -> int:
        """Delete letters set aside before a time, of a source, or all; gives how many had to stay all the same.

        A letter that comes meanwhile stays. A batch that was kept stays noted, so that a repetition of it adds
        nothing. Raises `WrongUse` where the place cannot delete such a choice at all.
        """

    @abstractmethod
    def target(self) -> str:
        """Where it is, in a word and without secrets: a path, a table, a topic."""

    def describe(self) -> str:
        """A few words for messages: `postgres letters`."""
        return f"{self.kind} {self.target()}"

    def problems(self) -> list[Problem]:
        """What is wrong with these settings, as far as can be told without connecting."""
        return []

    def probe(self) -> None:
        """Ask the world whether letters can be kept. Raises `NotReady` in one sentence."""


def read(box: Box) -> list[Letter]:
    """Every record kept at that place, without Spark: each once, in order of source and place.

    A record that two queries read is kept for both of them, and told once, under the first in the alphabet.
    """
    seen: dict[tuple[object, ...], str] = {}
    once = []
    for letter in sorted(box.all(), key=_order):
        place = (letter.source, letter.topic, letter.partition, letter.offset, letter.file, letter.value)
        # Rows without an offset may well be alike: a query keeps each of them.
        if place not in seen or (letter.offset is None and seen[place] == letter.query):
            seen[place] = letter.query
            once.append(letter)
    return once


def chosen(letter: Letter, before: datetime | None, source: str | None) -> bool:
    """Is it one of those that a purge names?"""
    return (before is None or letter.at < before) and source in (None, letter.source)


def _order(letter: Letter) -> tuple[object, ...]:
    return (
        letter.source,
        letter.topic or "",
        letter.file or "",
        letter.partition or 0,
        letter.offset or 0,
        letter.batch_id,
        letter.query,
    )
