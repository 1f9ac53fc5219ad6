"""Write rows of a backfill through the sink's own writer, once, under a number of its own."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from millstream.connectors.sink import SinkIdentity
from millstream.diagnostics.failure import MillstreamError
from millstream.runtime.hooks import bound
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.backfill.targets import Target
    from millstream.connectors.cut import Cut
    from millstream.connectors.sink import Writer
    from millstream.pipeline.model import Pipeline


def putting(
    spark: SparkSession, pipeline: Pipeline, target: Target, schema: StructType, instead: Cut | None
) -> Callable[[DataFrame], None]:
    """A function that writes rows in one commit of the sink; with `instead`, in the place of that cut's rows.

    The sink keeps the backfills of a query apart from the stream's batches and numbers them. The number is chosen
    here, before anybody has looked what is missing: of two backfills at the same time one writes, and the other
    raises `MillstreamError`. One that was killed has written all or nothing, and the next compares again.
    """
    sink = target.sink
    if instead is not None:
        replacing = sink.replacing(instead)
        assert replacing is not None, "refused before"
        sink = replacing
    # A table that a query replaces whole is filled like any other.
    mode = OutputMode.APPEND if target.mode is OutputMode.COMPLETE else target.mode
    identity = SinkIdentity(
        pipeline.name, target.query, ledger_id(pipeline.name, target.query), target.key, mode
    )
    chosen = bound(sink, pipeline.folder)
    with _opened(chosen.writer(identity), spark, schema) as writer:
        number = next(one for one in count() if not writer.holds(one))

    def put(rows: DataFrame) -> None:
        # Opened afresh: what others have written since then is seen.
        with _opened(chosen.writer(identity), spark, schema) as writer:
            if writer.holds(number) or writer.write(rows, number).skipped:
                raise MillstreamError(
                    f"another backfill of query '{target.query}' has written to {sink.describe()} meanwhile",
                    "run this one again: it compares afresh",
                )

    return put


@contextmanager
def _opened(writer: Writer, spark: SparkSession, schema: StructType) -> Iterator[Writer]:
    try:
        writer.open(spark, schema)
        yield writer
    finally:
        writer.close()


def ledger_id(pipeline: str, query: str) -> str:
    """What stands in the place of a checkpoint's id: the same for every backfill of a query."""
    return f"backfill-{hashlib.sha256(f'{pipeline}/{query}'.encode()).hexdigest()[:16]}"
