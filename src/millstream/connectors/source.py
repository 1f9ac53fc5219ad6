"""What a source kind is: settings, facts that the analyser reads, and how Spark reads it."""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.asking import Begun, Remark
    from millstream.connectors.dataset import Dataset
    from millstream.connectors.elsewhere import Fed, Place
    from millstream.connectors.letters import Letter


@dataclass(frozen=True)
class Need:
    """Something that must exist outside before a pipeline starts, so that `up` can make it.

    `system` is the connector's folder name, `what` a word of that system ("topic"), `at` the server's address as
    the spec has it, empty where it says none.
    """

    system: str
    what: str
    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    at: str = ""


@dataclass(frozen=True)
class Recent:
    """A message as it came: where it stands, when, its bytes; None for null."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Problem:
    """What is wrong with a setting, found without asking anybody: which field, what, why, what cures it.

    A field of a field is named with a dot, `cdc.keys`. `key` is the key inside the field, where the field holds
    options. `instead` is the value that cures it, as it would stand in a spec.
    """

    field: str | None
    message: str
    fix: str = ""
    why: str = ""
    key: str | None = None
    instead: str | None = None


@dataclass(frozen=True)
class Gap:
    """Records that a checkpoint goes on from and the source does not have any more: `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        many = self.end - self.start
        return (
            f"partition {self.partition} of topic '{self.topic}' has no offsets {self.start} to "
            f"{self.end - 1} any more: {many:,} record{'' if many == 1 else 's'}"
        )

    def passed(self, offsets: str | None) -> bool:
        """Has a query whose newest offsets these are, in Spark's JSON, left the gap behind?"""
        told = json.loads(offsets or "null") or {}
        return int(told.get(self.topic, {}).get(str(self.partition), self.end)) >= self.end


@dataclass(frozen=True)
class OffsetRange:
    """What one batch read of one source, in Spark's own offset JSON: from `start` to before `end`.

    `start` is None when the checkpoint does not say where the first batch began. `files` are the paths that the
    batch read, for sources of files.
    """

    start: str | None
    end: str
    files: tuple[str, ...] = ()


class Replays(StrEnum):
    """Can what a batch read be read again? From the safest to the worst."""

    EXACT = "exact"
    """The same rows, or the query stops."""
    CONDITIONAL = "conditional"
    """The same rows while something holds that nobody watches."""
    NONE = "none"
    """Rows may be gone without a word."""


@dataclass(frozen=True)
class Replay:
    """What becomes of a source's rows when their batch runs again.

    `text` goes on from the source's name: `can be read again from …`; for a condition it says what must hold:
    `no file of it may be changed in place`. `field` is the setting that decides, where one does.
    """

    how: Replays
    text: str
    field: str | None = None


class Source(Spec):
    """Base of every source kind. A kind is a subclass in `connectors/<system>/source.py`."""

    kind: ClassVar[str]
    """The key that names this kind in a spec."""
    main: ClassVar[str]
    """The field that a bare string stands for."""
    streams: ClassVar[bool] = True
    """Can it be read as a stream?"""
    static: ClassVar[bool] = False
    """Can it be read once, as a static table?"""
    replayable: ClassVar[bool] = False
    """Does reading the same offsets again give the same rows?"""
    payload: ClassVar[bool] = False
    """Rows carry undecoded bytes in a column `value`, which the spec's `format` and `schema` decode."""
    columns: ClassVar[str | None] = None
    """DDL of the columns that `read` gives whatever the settings, or None when the spec's `schema` says."""
    place: ClassVar[tuple[str, ...]] = ()
    """Columns that say where a record stands, for dead letters: topic, partition, offset."""
    made_up: ClassVar[bool] = False
    """Are its rows invented, to try a pipeline out? Then nothing is lost with them."""
    reread: ClassVar[bool] = False
    """Does each batch see a static table of this kind as it then stands? Otherwise as it stood at the start."""

    flows: ClassVar[frozenset[str]] = frozenset()
    """The triggers without batches with which Spark reads it: `continuous`, `real_time`."""
    bounds: ClassVar[tuple[str, ...]] = ()
    """Fields that are about batches: how much one takes, and into how many tasks it is cut."""

    server: ClassVar[str] = ""
    """The server of the local stack that it needs; empty where it needs none."""
    fed: ClassVar[bool] = False
    """Can `feed` give it records?"""

    @abstractmethod
    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:
        """Open it. `schema` is DDL, for kinds that need one; a stream unless `static`."""

    def read_range(self, spark: SparkSession, offsets: OffsetRange, schema: str | None) -> DataFrame | None:
        """The rows of one batch again, as a static DataFrame; None where a kind cannot."""
        return None

    def pieces(self, offsets: OffsetRange) -> list[str]:
        """What a batch reads, in words, a clause a piece; nothing when it reads nothing new of it."""
        if offsets.files:
            many = len(offsets.files)
            return (
                [f"file {offsets.files[0]}"]
                if many == 1
                else [f"{many} files, {offsets.files[0]} to {offsets.files[-1]}"]
            )
        return (
            [] if offsets.start == offsets.end else [f"{self.describe()}, {offsets.start} to {offsets.end}"]
        )

    def halves(self, offsets: OffsetRange) -> tuple[OffsetRange, OffsetRange] | None:
        """What `read_range` reads in two parts that together are the same; None where it is one record, or file."""
        if len(offsets.files) < 2:
            return None
        middle = len(offsets.files) // 2
        first, second = offsets.files[:middle], offsets.files[middle:]
        return replace(offsets, files=first), replace(offsets, files=second)

    def newest(self, records: int) -> Source:
        """The same source, reading about that many of its newest records when it is read once.

        The source itself where a kind cannot tell which are the newest.
        """
        return self

    def recent(self, limit: int) -> list[Recent] | None:
        """Its last records as they came, the newest first; None where a kind has no messages. Connects."""
        return None

    def oldest(self) -> Source:
        """The same source, read once from the oldest it has, wherever a stream begins."""
        return self

    def forgotten(self) -> list[Gap]:
        """The records that it once had before the oldest that is left, as far as it can tell. Connects."""
        return []

    def elsewhere(self, place: Place) -> Source | None:
        """The same source, reading all there is from a place of its own; None where a kind cannot."""
        return None

    def feed(self, records: Sequence[Fed], number: int, columns: Mapping[str, str]) -> None:
        """Give it more records, the `number`-th portion of them. Asked only of one moved `elsewhere`.

        `columns` are those of the spec's schema, with their types in Spark's DDL.
        """

    def takes_from(self, topic: str) -> bool:
        """Does it read that topic?"""
        return False

    def discard(self) -> None:
        """Remove what it was fed. Asked only of a source that was moved `elsewhere`."""

    def resend(self, topic: str, letters: Sequence[Letter]) -> bool:
        """Send dead letters of this source to a topic of its server; False where a kind has none.

        Raises `NotReady` when one did not arrive; others may have.
        """
        return False

    def replay(self, *, static: bool) -> Replay:
        """What a batch that runs again gets of it, with these settings."""
        if static:
            return Replay(Replays.CONDITIONAL, "it must not change between a batch and its repetition")
        if self.replayable:
            return Replay(Replays.EXACT, "can be read again from the offsets in the checkpoint")
        return Replay(Replays.NONE, "cannot give a lost batch again")

    def problems(self) -> list[Problem]:
        """What is wrong with these settings, as far as can be told without connecting."""
        return []

    def unflowing(self) -> list[Problem]:
        """Settings that are about batches, and say nothing where rows come one by one."""
        given = (name for name in self.bounds if getattr(self, name) is not None)
        return [
            Problem(name, f"{name} is about batches, and there are none", "leave it out") for name in given
        ]

    def begins(self) -> str:
        """Where a query without a checkpoint starts to read, as a clause after the source's name; may be empty."""
        return ""

    def losses(self) -> list[Problem]:
        """Settings under which records are passed over without a word."""
        return []

    def surplus(self) -> list[Problem]:
        """Settings under which records come that were never meant to: those of aborted transactions."""
        return []

    def limited(self) -> bool:
        """Does a batch take at most so much of it?"""
        return False

    def newest_first(self) -> bool:
        """May an earlier batch hold later records?"""
        return False

    def taken_away(self) -> bool:
        """Does it remove records once a query has read them, so that another query may miss them?"""
        return False

    def reads_from(self) -> frozenset[str]:
        """What it reads, in the words of `Sink.writes_to`: topics with their brokers, folders, tables."""
        return frozenset()

    def datasets(self) -> tuple[Dataset, ...]:
        """What it reads, as lineage names it; nothing where that has no name."""
        return ()

    def needs(self) -> list[Need]:
        """What must exist outside: topics, tables."""
        return []

    def identity(self) -> dict[str, str]:
        """What it reads, for the checkpoint's record and without secrets. Does not connect."""
        return {"kind": self.kind}

    def probe(self) -> dict[str, str]:
        """Ask the world whether it can be read, and what it is (topic ids). Raises `NotReady` in one sentence."""
        return {}

    def another(self, told: Mapping[str, str], now: Mapping[str, str]) -> str | None:
        """Is what it reads another thing than a checkpoint began with? One sentence on which, or None.

        `told` is what the source said of itself at the query's last start, `now` what `probe` has just given.
        """
        return None

    def gaps(self, start: str) -> list[Gap]:
        """The records from `start` on, in Spark's own JSON, that are gone. Connects.

        Nothing where a kind cannot tell. Raises `Unfit` when there are no such offsets yet, `NotReady` when nobody
        answers.
        """
        return []

    def lenient(self) -> Source:
        """The same source, going on where records are gone; itself where it stops for nothing."""
        return self

    def ask(self, *, static: bool, begun: Sequence[Begun], fresh: Sequence[str]) -> Iterable[Remark]:
        """What is not as it should be, found by asking the world: a probe, unless a kind can tell more.

        `begun` is what the checkpoints of the queries that read it know; `fresh` are the queries without one.
        Raises `Silent` when nobody answers, `NotReady` when what it reads is not there.
        """
        self.probe()
        return ()

    def describe(self) -> str:
        """A few words for a graph: `kafka clicks`."""
        return f"{self.kind} {getattr(self, self.main, '')}".strip()
