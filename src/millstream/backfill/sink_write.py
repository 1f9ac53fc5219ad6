"""Write the rows of a backfill through the sink's own writer, exactly once, as a separate numbered batch."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from millstream.connectors.api.writer import SinkIdentity
from millstream.diagnostics.failure import MillstreamError
from millstream.frames.user_functions import bind_functions
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.backfill.targets import BackfillTarget
    from millstream.connectors.api.values.event_time_range import EventTimeRange
    from millstream.connectors.api.writer import Writer
    from millstream.pipeline.model import Pipeline


def open_backfill_write(
    spark: SparkSession,
    pipeline: Pipeline,
    target: BackfillTarget,
    schema: StructType,
    instead: EventTimeRange | None,
) -> Callable[[DataFrame], None]:
    """Return a function that writes rows in one commit of the sink; with `instead`, it replaces rows in that range.

    The sink numbers the backfills of a query separately from the stream's batches. The number is chosen here, before
    missing rows are looked for: of two concurrent backfills one writes, and the other raises `MillstreamError`.
    A backfill that was killed has written all or nothing, and the next one compares again.
    """
    sink = target.sink
    if instead is not None:
        replacing = sink.replacing_range(instead)
        assert replacing is not None, "refused before"
        sink = replacing
    # A table that the query replaces completely is filled like any other.
    mode = OutputMode.APPEND if target.mode is OutputMode.COMPLETE else target.mode
    identity = SinkIdentity(
        pipeline.name, target.query, ledger_id(pipeline.name, target.query), target.key, mode
    )
    bound_sink = bind_functions(sink, pipeline.folder)
    with _opened(bound_sink.writer(identity), spark, schema) as writer:
        number = next(candidate for candidate in count() if not writer.has_batch(candidate))

    def write_rows(rows: DataFrame) -> None:
        # Open the writer again, so that it sees batches written in the meantime.
        with _opened(bound_sink.writer(identity), spark, schema) as writer:
            if writer.has_batch(number) or writer.write(rows, number).is_skipped:
                raise MillstreamError(
                    f"another backfill of query '{target.query}' has written to {sink.describe()} in the meantime",
                    "run this backfill again; it then compares with the new rows",
                )

    return write_rows


@contextmanager
def _opened(writer: Writer, spark: SparkSession, schema: StructType) -> Iterator[Writer]:
    try:
        writer.open(spark, schema)
        yield writer
    finally:
        writer.close()


def ledger_id(pipeline: str, query: str) -> str:
    """Return the id used in place of a checkpoint's id; it is the same for every backfill of a query."""
    return f"backfill-{hashlib.sha256(f'{pipeline}/{query}'.encode()).hexdigest()[:16]}"
