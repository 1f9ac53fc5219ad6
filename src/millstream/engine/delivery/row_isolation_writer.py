"""Write to a sink that may refuse rows: refused rows become dead letters, and the rest of the batch is written."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from millstream.checkpoint.rewinds import letters_id
from millstream.connectors.api.dead_letters import COLUMNS
from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.connectors.failpoints import hit_failpoint
from millstream.diagnostics.failure import MillstreamError
from millstream.engine.delivery.frame_cache import persisted
from millstream.engine.failure_classifier import FailureKind, classify
from millstream.frames.expectations import row_as_json
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.batch_ledger import LedgerEntry
    from millstream.connectors.api.dead_letters import DeadLetterStore, DeadLetterWriter
    from millstream.engine.events.event_bus import EventBus
    from millstream.pipeline.model import Pipeline

# One bad row in a million takes forty attempts. If a batch needs more than TRIES, most of it is bad: the query ends.
TRIES, SECONDS = 1000, 60.0


class RowIsolatingWriter(Writer):
    """Writes through another writer. If it refuses a batch, the bad rows are found by trying parts of it at the sink.

    The refused rows are stored before the rest is written, both once under the batch's id. A batch that is replayed
    in between is split again, and its dead letters are already there. If the sink by then accepts a row that it had
    refused, the sink has the row and the dead letter remains. If it refuses another row, the query ends.
    """

    def __init__(
        self,
        identity: SinkIdentity,
        inner: Writer,
        store: DeadLetterStore,
        keeper: DeadLetterWriter,
        source: str,
        events: EventBus | None,
    ) -> None:
        super().__init__(identity)
        self._inner = inner
        self._store = store
        self._keeper = keeper
        self._source = source
        self._events = events
        # A refused batch is run once more to find its bad rows.
        self.passes = inner.passes + 1
        self.has_checksums, self.has_ledger, self.skips_empty = (
            inner.has_checksums,
            inner.has_ledger,
            inner.skips_empty,
        )

    def last_committed_batches(self, spark: SparkSession) -> tuple[LedgerEntry, ...]:
        """Return the ledger entries of the sink."""
        return self._inner.last_committed_batches(spark)

    def newest(self, spark: SparkSession) -> LedgerEntry | None:
        """Return the newest ledger entry of the sink."""
        return self._inner.newest(spark)

    def verify_ledger(self, spark: SparkSession, judge: Callable[[Sequence[LedgerEntry]], None]) -> None:
        """Verify the ledger of the sink."""
        self._inner.verify_ledger(spark, judge)

    def entry(self, batch_id: int) -> LedgerEntry | None:
        """Return the sink's ledger entry of a batch."""
        return self._inner.entry(batch_id)

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Open the sink and the dead-letter store. Raises their exceptions."""
        self._inner.open(spark, schema)
        self._keeper.open(spark)

    def has_batch(self, batch_id: int) -> bool:
        """Return whether the sink has the batch. Its dead letters were stored before."""
        return self._inner.has_batch(batch_id)

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Write one batch without the rows that the sink refuses. Raises errors that are not caused by some rows."""
        try:
            return self._inner.write(frame, batch_id)
        except Exception as error:
            # Any error that a sink raises for rows it does not accept. All others are raised again.
            split = None if classify(None, error).cause is not FailureKind.DEFECT else self._split_rows(frame)
            if split is None:
                raise
        good, bad = split
        self._store_dead_letters(bad, batch_id)
        return self._inner.write(good, batch_id)

    def trial(self, frame: DataFrame) -> None:
        """Try the rows at the sink, to see whether rows could be isolated."""
        self._inner.trial(frame)

    def close(self) -> None:
        """Close the sink and the dead-letter store."""
        self._inner.close()
        self._keeper.close()

    def _split_rows(self, frame: DataFrame) -> tuple[DataFrame, DataFrame] | None:
        """Split the rows into accepted and refused ones, with reasons. None if they cannot be separated."""
        finder = RejectedRowFinder(frame, self._inner)
        bad = finder.find()
        if not bad:
            return None
        good = finder.without(bad)
        return None if finder.fails(good) is not None else (good, finder.letters(bad))

    def _store_dead_letters(self, bad: DataFrame, batch_id: int) -> None:
        # Without a topic, even if the query outputs one: a row is not the record, which other sinks have accepted.
        values = {
            "query": F.lit(self.identity.query),
            "source": F.lit(self._source),
            "value": F.encode(row_as_json([name for name in bad.columns if name != REASON]), "UTF-8"),
            "reason": F.concat(F.lit(f"{self.identity.sink} refuses it: "), F.col(REASON)),
            "batch_id": F.lit(batch_id),
            "at": F.current_timestamp(),
        }
        schema = bad.sparkSession.createDataFrame([], COLUMNS).schema
        frame = persisted(
            bad.select(
                *(
                    values.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
                    for field in schema
                )
            )
        )
        try:
            rows, size = frame.agg(F.count(F.lit(1)), F.sum(F.length("value"))).collect()[0]
            if not self._keeper.keep(frame, batch_id, int(size or 0)):
                self._require_stored(frame, batch_id)
        finally:
            frame.unpersist()
        hit_failpoint("rows.kept")
        if self._events is not None:
            reasons = [{"source": self._source, "reason": "refused", "records": rows}]
            self._events.emit(
                "dead_letter",
                self.identity.query,
                batch=batch_id,
                sources={self._source: rows},
                records=rows,
                reasons=reasons,
            )

    def _require_stored(self, frame: DataFrame, batch_id: int) -> None:
        """Raise `MillstreamError` unless an earlier attempt at the batch has stored all of these dead letters.

        The sink may have changed since, and refuse a row that it would have accepted then.
        """
        batch = self.identity.query, self._source, batch_id
        stored = Counter(
            letter.value
            for letter in self._store.all()
            if (letter.query, letter.source, letter.batch_id) == batch
        )
        rows = frame.select("value", "reason").collect()
        if Counter(bytes(row.value) for row in rows) <= stored:
            return
        reason = next(row.reason for row in rows if bytes(row.value) not in stored)
        raise MillstreamError(
            f"batch {batch_id} is written again after a failure, and a row is refused that is not among its dead "
            f"letters: {reason}",
            "let the sink accept the row, or write 'on_error: dead_letter' to keep the whole batch until it does",
        )


REASON = "_millstream_refused"
"""The column of refused rows with the reason. The name cannot collide with a user's."""


@dataclass
class RejectedRowFinder:
    """The rows of one batch in the driver's memory, tried at a sink in parts. Rows are identified by their number."""

    frame: DataFrame
    writer: Writer
    _tries_left: int = TRIES
    _deadline: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    def __post_init__(self) -> None:
        self._rows: Any = self.frame.toArrow()

    def find(self) -> dict[int, str]:
        """Find the rows that the sink refuses by themselves, with its messages. Empty if time or tries ran out."""
        refused_rows: dict[int, str] = {}
        pieces = [(0, int(self._rows.num_rows))]
        while pieces:
            first, last = pieces.pop()
            if not self._tries_left or time.monotonic() > self._deadline:
                return {}
            self._tries_left -= 1
            message = self.fails(self._to_frame(self._rows.slice(first, last - first)))
            if message is None:
                continue
            if last - first == 1:
                refused_rows[first] = message
            else:
                middle = (first + last) // 2
                pieces += [(middle, last), (first, middle)]
        return refused_rows

    def fails(self, frame: DataFrame) -> str | None:
        """Return the sink's message if it refuses the rows, or None. Raises an outage."""
        try:
            self.writer.trial(frame)
        except Exception as error:
            # As in `write`, an error that the rows did not cause ends the batch.
            failure = classify(None, error)
            if failure.cause is not FailureKind.DEFECT:
                raise
            return failure.message
        return None

    def without(self, rows: dict[int, str]) -> DataFrame:
        """Return all rows but these."""
        return self._to_frame(
            self._take([number for number in range(self._rows.num_rows) if number not in rows])
        )

    def letters(self, rows: dict[int, str]) -> DataFrame:
        """Return these rows with the reason in an extra column."""
        table = self._take(list(rows)).append_column(REASON, pa.array(list(rows.values()), pa.string()))
        schema = type(self.frame.schema)(list(self.frame.schema)).add(REASON, "string")
        return self.frame.sparkSession.createDataFrame(table, schema)

    def _take(self, numbers: list[int]) -> Any:
        return self._rows.take(pa.array(numbers, pa.int64()))

    def _to_frame(self, rows: Any) -> DataFrame:
        return self.frame.sparkSession.createDataFrame(rows, self.frame.schema)


def create_row_isolation_writer(
    pipeline: Pipeline, identity: SinkIdentity, inner: Writer, events: EventBus | None
) -> RowIsolatingWriter:
    """Return a writer whose refused rows go to the pipeline's dead-letter store, under the sink's own key."""
    letter_identity = SinkIdentity(
        identity.pipeline,
        identity.query,
        letters_id(identity.query_id, inner.checkpoint),
        f"dead_letters/{identity.sink}",
        OutputMode.APPEND,
    )
    source = pipeline.reads(identity.query)
    keeper = pipeline.letters.keeper(letter_identity)
    keeper.checkpoint = inner.checkpoint
    isolating_writer = RowIsolatingWriter(identity, inner, pipeline.letters, keeper, source, events)
    isolating_writer.checkpoint = inner.checkpoint
    return isolating_writer
