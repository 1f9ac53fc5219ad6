"""A sink that may refuse rows: these become dead letters, and the rest of the batch is written."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from millstream.connectors.failpoints import reach
from millstream.connectors.letters import COLUMNS
from millstream.connectors.sink import SinkIdentity, Writer, Written
from millstream.runtime.caching import kept
from millstream.runtime.expect import row_of
from millstream.runtime.failures import Cause, classify
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.letters import Keeper
    from millstream.connectors.remembered import Entry
    from millstream.pipeline.model import Pipeline
    from millstream.runtime.events import Events

# One bad row in a million costs forty tries. A batch that needs more is not one with some bad rows: the query ends.
TRIES, SECONDS = 1000, 60.0
# Columns of a row that tell where its record stood, where the query has kept them under these names and types.
_PLACE = {"topic": "string", "partition": "int", "offset": "bigint"}


class SiftingWriter(Writer):
    """Writes through another writer; a batch that it refuses is parted by trying pieces of it at the sink.

    The refused rows are kept before the rest is written, each of both once with the batch's number. A batch that
    comes again in between is parted again, and its letters are there already. A sink that by then takes a row that
    it had refused has the row, and the letter stays.
    """

    def __init__(
        self, identity: SinkIdentity, inner: Writer, keeper: Keeper, source: str, events: Events | None
    ) -> None:
        super().__init__(identity)
        self._inner = inner
        self._keeper = keeper
        self._source = source
        self._events = events
        # A refused batch is run once more to be parted.
        self.passes = inner.passes + 1
        self.sums = inner.sums

    def remembered(self, spark: SparkSession) -> tuple[Entry, ...]:
        """As the sink tells it."""
        return self._inner.remembered(spark)

    def answer(self, spark: SparkSession, judge: Callable[[Sequence[Entry]], None]) -> None:
        """As the sink does."""
        self._inner.answer(spark, judge)

    def entry(self, batch_id: int) -> Entry | None:
        """As the sink tells it."""
        return self._inner.entry(batch_id)

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Open the sink and the place of dead letters. Raises what they raise."""
        self._inner.open(spark, schema)
        self._keeper.open(spark)

    def holds(self, batch_id: int) -> bool:
        """Has the sink the batch? Its letters were kept before."""
        return self._inner.holds(batch_id)

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Write one batch without the rows that the sink refuses. Raises what is no fault of some rows."""
        try:
            return self._inner.write(frame, batch_id)
        except Exception as error:
            # Whatever a sink raises for rows that it does not take; all else goes on.
            parted = None if classify(None, error).cause is not Cause.DEFECT else self._parted(frame)
            if parted is None:
                raise
        good, bad = parted
        self._keep(bad, batch_id)
        return self._inner.write(good, batch_id)

    def trial(self, frame: DataFrame) -> None:
        """As the sink itself: asked where some rows could not be told from others."""
        self._inner.trial(frame)

    def close(self) -> None:
        """Let go of both."""
        self._inner.close()
        self._keeper.close()

    def _parted(self, frame: DataFrame) -> tuple[DataFrame, DataFrame] | None:
        """The rows that the sink takes and those that it refuses, with reasons; None where none can be told apart."""
        sieve = Sieve(frame, self._inner)
        bad = sieve.refused()
        if not bad:
            return None
        good = sieve.without(bad)
        return None if sieve.fails(good) is not None else (good, sieve.letters(bad))

    def _keep(self, bad: DataFrame, batch_id: int) -> None:
        place = [
            (F.col(name) if bad.schema[name].dataType.simpleString() == kind else F.lit(None))
            if name in bad.columns
            else F.lit(None)
            for name, kind in _PLACE.items()
        ]
        told = {
            "query": F.lit(self.identity.query),
            "source": F.lit(self._source),
            **dict(zip(_PLACE, place, strict=True)),
            "value": F.encode(row_of([name for name in bad.columns if name != REASON]), "UTF-8"),
            "reason": F.concat(F.lit(f"{self.identity.sink} refuses it: "), F.col(REASON)),
            "batch_id": F.lit(batch_id),
            "at": F.current_timestamp(),
        }
        wanted = bad.sparkSession.createDataFrame([], COLUMNS).schema
        frame = kept(
            bad.select(
                *(told.get(one.name, F.lit(None)).cast(one.dataType).alias(one.name) for one in wanted)
            )
        )
        try:
            rows, size = frame.agg(F.count(F.lit(1)), F.sum(F.length("value"))).collect()[0]
            self._keeper.keep(frame, batch_id, int(size or 0))
        finally:
            frame.unpersist()
        reach("rows.kept")
        if self._events is not None:
            reasons = [{"source": self._source, "reason": "refused", "records": rows}]
            self._events.tell(
                "dead_letter",
                self.identity.query,
                batch=batch_id,
                sources={self._source: rows},
                records=rows,
                reasons=reasons,
            )


REASON = "_millstream_refused"
"""The column of refused rows that says why; the name cannot meet a user's."""


@dataclass
class Sieve:
    """The rows of one batch in the driver's memory, tried at a sink in pieces. Rows are told by their number."""

    frame: DataFrame
    writer: Writer
    _left: int = TRIES
    _until: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    def __post_init__(self) -> None:
        self._rows: Any = self.frame.toArrow()

    def refused(self) -> dict[int, str]:
        """The rows that the sink refuses by themselves, with what it says; none when there was no time to see."""
        found: dict[int, str] = {}
        pieces = [(0, int(self._rows.num_rows))]
        while pieces:
            first, last = pieces.pop()
            if not self._left or time.monotonic() > self._until:
                return {}
            self._left -= 1
            said = self.fails(self._made(self._rows.slice(first, last - first)))
            if said is None:
                continue
            if last - first == 1:
                found[first] = said
            else:
                middle = (first + last) // 2
                pieces += [(middle, last), (first, middle)]
        return found

    def fails(self, frame: DataFrame) -> str | None:
        """What the sink says of rows that it refuses, or None. Raises an outage."""
        try:
            self.writer.trial(frame)
        except Exception as error:
            # As in `write`: what is no fault of the rows ends the batch.
            failure = classify(None, error)
            if failure.cause is not Cause.DEFECT:
                raise
            return failure.message
        return None

    def without(self, rows: dict[int, str]) -> DataFrame:
        """All rows but these."""
        return self._made(self._taken([at for at in range(self._rows.num_rows) if at not in rows]))

    def letters(self, rows: dict[int, str]) -> DataFrame:
        """These rows with the reason in a column of its own."""
        told = self._taken(list(rows)).append_column(REASON, pa.array(list(rows.values()), pa.string()))
        schema = type(self.frame.schema)(list(self.frame.schema)).add(REASON, "string")
        return self.frame.sparkSession.createDataFrame(told, schema)

    def _taken(self, numbers: list[int]) -> Any:
        return self._rows.take(pa.array(numbers, pa.int64()))

    def _made(self, rows: Any) -> DataFrame:
        return self.frame.sparkSession.createDataFrame(rows, self.frame.schema)


def sifting(
    pipeline: Pipeline, identity: SinkIdentity, inner: Writer, events: Events | None
) -> SiftingWriter:
    """A writer whose refused rows go where the pipeline keeps its dead letters, under the sink's own mark."""
    apart = SinkIdentity(
        identity.pipeline,
        identity.query,
        identity.query_id,
        f"dead_letters/{identity.sink}",
        OutputMode.APPEND,
    )
    source = pipeline.reads(identity.query)
    return SiftingWriter(identity, inner, pipeline.letters.keeper(apart), source, events)
