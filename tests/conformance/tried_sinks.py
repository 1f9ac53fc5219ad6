"""A sink of a kind with writers of its queries, and the batches that tests of all kinds write to it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from conformance.targets import Case, Row, Target, ordered
from local_frames import create_frame
from millstream.connectors.api.batch_ledger import BatchMetadata
from millstream.connectors.api.writer import SinkIdentity, Writer
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.batch_ledger import LedgerEntry

FIRST: list[Row] = [("a", "1"), ("b", "2")]
SECOND: list[Row] = [("b", "3"), ("c", "4")]
THIRD: list[Row] = [("d", "5")]


class TriedSink:
    """A target with its writers, and batches made of plain rows."""

    def __init__(self, case: Case, target: Target, spark: SparkSession) -> None:
        self.case, self.target, self.spark = case, target, spark
        self._open: list[Writer] = []
        # The database is shared by all tests: an address of memory comes again, and with it another test's ledger.
        self._own = uuid.uuid4()

    @property
    def repeats(self) -> bool:
        """May a repeated batch be seen twice, by what the kind declares?"""
        return self.target.sink.guarantee(self.case.mode)[0] is Guarantee.AT_LEAST_ONCE

    @property
    def remembers(self) -> bool:
        """Does the kind keep an account that outlives the process? Its guarantee says so."""
        return self.target.sink.guarantee(self.case.mode)[0] is Guarantee.EXACTLY_ONCE

    def frame(self, rows: list[Row]) -> DataFrame:
        return self.target.shape(create_frame(self.spark, rows, "k STRING, v STRING"))

    def writer(self, query: str = "one") -> Writer:
        """A writer as a start of that query makes it; each query has a checkpoint of its own."""
        writer = self.closed(query)
        self.open(writer)
        return writer

    def open(self, writer: Writer) -> None:
        writer.open(self.spark, self.frame([]).schema)

    def closed(self, query: str = "one", checkpoint: str = "") -> Writer:
        """The same before it is opened; with another checkpoint where one is named."""
        sink, query_id = self.target.sink, f"id-of-{query}{checkpoint}-{self._own}"
        writer = sink.writer(SinkIdentity("shop", query, query_id, f"{sink.kind}:target", self.case.mode))
        writer.note = lambda batch: BatchMetadata((f'{{"end": {batch}}}', None), 1000 + batch, f"2:{batch}")
        self._open.append(writer)
        return writer

    def rows(self) -> list[Row]:
        return self.target.read()

    def assert_holds(self, *batches: list[Row]) -> None:
        assert self.rows() == self.case.holding(*batches)

    def assert_repeated(self, actual: list[Row], *batches: list[Row]) -> None:
        """Rows after a batch has come again are those of the batches; some kinds may have them twice."""
        expected = self.case.holding(*batches)
        if self.repeats:
            expected, actual = ordered(set(expected)), ordered(set(actual))
        assert actual == expected

    def close(self) -> None:
        for writer in self._open:
            writer.close()


@dataclass(frozen=True)
class NextStart:
    """What a start of a query finds in a sink that has its batches, and the rows after its first batch."""

    entries: Sequence[LedgerEntry]
    """The last batch of each query, as the ledger has them before the writer is opened."""
    entry: LedgerEntry | None
    """The last batch, as the open writer knows it."""
    has_last: bool
    has_next: bool
    rows: list[Row]


@dataclass(frozen=True)
class OtherStarts:
    """What a start of another query finds, and then one of the first query with a fresh checkpoint."""

    has_batch_of_first: bool
    rows: list[Row]
    """After a batch of the other query."""
    entries: Sequence[LedgerEntry]
    """The last batch of each query, as a start with a fresh checkpoint finds them."""


class WrittenSink(TriedSink):
    """Two batches of query `one`, each of which comes again, then a batch of query `two`.

    Each step is taken when a test first asks for what it leaves, after the steps above it.
    """

    LAST = 7
    """The second batch; numbers may have gaps."""

    @cached_property
    def start(self) -> tuple[Writer, bool]:
        """The writer of the first start, and whether it has a batch before it wrote one."""
        writer = self.writer()
        return writer, writer.has_batch(0)

    @cached_property
    def first(self) -> list[Row]:
        """The rows after batch 0."""
        self.start[0].write(self.frame(FIRST), 0)
        return self.rows()

    @cached_property
    def second(self) -> list[Row]:
        """The rows after the second batch."""
        assert self.first
        self.start[0].write(self.frame(SECOND), self.LAST)
        return self.rows()

    @cached_property
    def knows(self) -> tuple[bool, bool]:
        """Whether the first start has the second batch then, and one after it."""
        assert self.second
        return self.start[0].has_batch(self.LAST), self.start[0].has_batch(self.LAST + 1)

    @cached_property
    def repeated(self) -> list[Row]:
        """The rows after the second batch has come again in the first start."""
        assert self.knows
        self.start[0].write(self.frame(SECOND), self.LAST)
        return self.rows()

    @cached_property
    def older(self) -> list[Row]:
        """The rows after batch 0 has come again after the second one."""
        assert self.repeated
        self.start[0].write(self.frame(FIRST), 0)
        return self.rows()

    @cached_property
    def next_start(self) -> NextStart:
        """The next start of the query, in which the second batch comes again."""
        assert self.older
        self.start[0].close()
        writer = self.closed()
        entries = writer.last_committed_batches(self.spark)
        self.open(writer)
        entry, has_last = writer.entry(self.LAST), writer.has_batch(self.LAST)
        has_next = writer.has_batch(self.LAST + 1)
        writer.write(self.frame(SECOND), self.LAST)
        return NextStart(entries, entry, has_last, has_next, self.rows())

    @cached_property
    def other_starts(self) -> OtherStarts:
        """Query `two` writes a batch 0, and query `one` starts with a fresh checkpoint."""
        assert self.next_start
        other = self.writer("two")
        has_batch_of_first = other.has_batch(0) or other.has_batch(self.LAST)
        other.write(self.frame(THIRD), 0)
        entries = self.closed(checkpoint="-fresh").last_committed_batches(self.spark)
        return OtherStarts(has_batch_of_first, self.rows(), entries)
