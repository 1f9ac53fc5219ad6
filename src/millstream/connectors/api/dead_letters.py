"""Dead letters: records that could not be processed, and the stores that keep them."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, ClassVar

from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections import defaultdict
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.connectors.api.values.problem import Problem
    from millstream.connectors.api.writer import SinkIdentity

COLUMNS = (
    "query STRING, source STRING, topic STRING, partition INT, `offset` BIGINT, file STRING, "
    "timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, reason STRING, batch_id BIGINT, at TIMESTAMP, "
    "expectation STRING"
)
"""Columns of a dead letter: its query, position and bytes, the reason, and the time."""

# Size in bytes up to which a batch's dead letters may be collected in the driver, if that is cheaper than tasks.
FEW = 64 * 1024 * 1024


@dataclass(frozen=True)
class DeadLetter:
    """One record that could not be processed.

    `value` and `key` are the original bytes, None for null. `topic`, `partition` and `offset` are None for records of
    files, `file` for records of topics.
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
    """Headers with `key` and `value`; None if the record has none, or if they were not read."""
    expectation: str | None = None
    """Expectation that the row violated, `a, b` for several; None for a malformed record."""


class DeadLetterWriter(ABC):
    """Writes the dead letters of one query. Writing a batch again adds nothing."""

    checkpoint: CheckpointPath | None = None
    """Folder of the query's checkpoint, whose lock shows which run may write; None outside a run."""

    @abstractmethod
    def open(self, spark: SparkSession) -> None:
        """Prepare for writing, once per start. Raises `NotReady` or `Outage` if dead letters could not be written."""

    @abstractmethod
    def keep(self, frame: DataFrame, batch_id: int, size: int) -> bool:
        """Write one batch's dead letters, in the columns of `COLUMNS`, atomically with the batch id.

        `size` is their approximate size in bytes. Returns False if dead letters of that batch were written before.
        Raises as a sink's writer does.
        """

    def keep_rows(self, spark: SparkSession, rows: pa.Table, batch_id: int) -> None:
        """Write one batch's dead letters that are in the driver's memory, as `keep` does.

        `rows` has the columns and types of `dead_letter_rows.SCHEMA`. A kind that can write them without a Spark job
        overrides this.
        """
        self.keep(spark.createDataFrame(rows, COLUMNS), batch_id, rows.nbytes)

    @abstractmethod
    def close(self) -> None:
        """Close connections. Called once, also after a failure."""


class DeadLetterStore(Spec, ABC):
    """Base of every dead-letter store. A kind is a subclass in `connectors/<system>/dead_letters.py`."""

    kind: ClassVar[str]
    """Key of this kind in a spec."""
    main: ClassVar[str]
    """Field that is set when the value in the spec is a plain string."""
    is_default: ClassVar[bool] = False
    """Whether a plain path in `dead_letters` means this kind. True for one kind."""

    @abstractmethod
    def keeper(self, identity: SinkIdentity) -> DeadLetterWriter:
        """Create the writer. Its module is imported here because it may be slow to import."""

    @abstractmethod
    def all(self) -> Iterator[DeadLetter]:
        """Read all dead letters in any order, without Spark; none before the first was written.

        Reads in portions, so that at most a few thousand are in memory.
        """

    @abstractmethod
    def latest(self, limit: int, sources: Sequence[str] = ()) -> list[DeadLetter]:
        """Return the latest dead letters, newest first, at most `limit`, of these sources and views, or of all.

        Older ones are not loaded, because an open live page calls this every few seconds in the process of the run.
        """

    @abstractmethod
    def counts(self, before: datetime | None = None) -> Counter[Group]:
        """Count all dead letters, or those written before a time, without loading them."""

    @abstractmethod
    def purge(self, before: datetime | None, source: str | None) -> int:
        """Delete dead letters written before a time, of a source, or all; return how many could not be deleted.

        A dead letter that is written meanwhile stays. The ledger keeps the batches, so that repeating one adds
        nothing. Raises `InvalidInput` if the store cannot delete such a selection at all.
        """

    @abstractmethod
    def delete_sent(self, source: str, written: Mapping[str, Collection[datetime]]) -> int:
        """Delete a source's dead letters that are records of a topic; return how many could not be deleted.

        Only those are deleted that a query wrote at one of its times in `written`, which are the values of `at` that
        were read. A dead letter may appear in the store long after its `at`.
        """

    @abstractmethod
    def target(self) -> str:
        """Return the store's location in a word, without secrets: a path, a table, a topic."""

    def change_mark(self) -> object:
        """Return a value that differs once dead letters were added; None if a kind cannot tell without reading."""
        return None

    def describe(self) -> str:
        """Return a short label for messages: `postgres letters`."""
        return f"{self.kind} {self.target()}"

    def problems(self) -> list[Problem]:
        """Check the settings, as far as possible without connecting."""
        return []

    def probe(self) -> None:
        """Connect, and check that dead letters can be written. Raises `NotReady` in one sentence."""


Group = tuple[str, str, str]
"""Group for counting: query, source or view, and reason."""


def take_newest(dead_letters: Iterable[DeadLetter], limit: int) -> list[DeadLetter]:
    """Return the `limit` latest dead letters, newest first; only these are kept in memory."""
    return heapq.nlargest(
        limit, dead_letters, key=lambda dead_letter: (dead_letter.at, _sort_key(dead_letter))
    )


def count_records(counts: Mapping[Group, int]) -> Counter[tuple[str, str]]:
    """Count the records of dead letters by source and reason; a record that two queries read counts once."""
    totals: Counter[tuple[str, str]] = Counter()
    for (_, source, reason), count in counts.items():
        totals[source, reason] = max(totals[source, reason], count)
    return totals


def skip_duplicates(dead_letters: Iterable[DeadLetter], counts: Mapping[Group, int]) -> Iterator[DeadLetter]:
    """Yield dead letters, skipping the second one of a topic's record that two queries read.

    `counts` are those of the store. Records are remembered, with a few bytes each, only for sources with dead letters
    of two queries.
    """
    readers = Counter(source for _, source in {(query, source) for query, source, _ in counts})
    positions: set[int] = set()
    for dead_letter in dead_letters:
        if readers[dead_letter.source] > 1 and dead_letter.offset is not None:
            position = hash(
                (dead_letter.source, dead_letter.topic, dead_letter.partition, dead_letter.offset)
            )
            if position in positions:
                continue
            positions.add(position)
        yield dead_letter


def read_once(
    store: DeadLetterStore, source: str, before: datetime, written: defaultdict[str, set[datetime]]
) -> Iterator[DeadLetter]:
    """Yield a source's dead letters written before a time, a record that two queries read once.

    Notes in `written` the times at which each query wrote them, for `DeadLetterStore.delete_sent`.
    """

    def read() -> Iterator[DeadLetter]:
        for dead_letter in store.all():
            at = dead_letter.at
            if dead_letter.source == source and (at if at.tzinfo else at.replace(tzinfo=UTC)) < before:
                written[dead_letter.query].add(at)
                yield dead_letter

    return skip_duplicates(read(), store.counts())


def read_unique(store: DeadLetterStore) -> list[DeadLetter]:
    """Read every stored record without Spark, each once, in order of source and position.

    A record that two queries read is stored for both, and returned once, for the first in alphabetical order.
    """
    positions: dict[tuple[object, ...], str] = {}
    unique = []
    for dead_letter in sorted(store.all(), key=_sort_key):
        position = (
            dead_letter.source,
            dead_letter.topic,
            dead_letter.partition,
            dead_letter.offset,
            dead_letter.file,
            dead_letter.value,
        )
        # Rows without an offset may be identical, and a query stores each of them.
        if position not in positions or (
            dead_letter.offset is None and positions[position] == dead_letter.query
        ):
            positions[position] = dead_letter.query
            unique.append(dead_letter)
    return unique


def is_selected(dead_letter: DeadLetter, before: datetime | None, source: str | None) -> bool:
    """Return whether a purge includes the dead letter."""
    return (before is None or dead_letter.at < before) and source in (None, dead_letter.source)


def _sort_key(dead_letter: DeadLetter) -> tuple[object, ...]:
    return (
        dead_letter.source,
        dead_letter.topic or "",
        dead_letter.file or "",
        dead_letter.partition or 0,
        dead_letter.offset or 0,
        dead_letter.batch_id,
        dead_letter.query,
    )
