"""Deliver spooled batches to their sinks in order, while no run is active."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.writer import SinkIdentity
from millstream.diagnostics.failure import CheckpointMismatch, MillstreamError, NotReady
from millstream.engine.delivery.batch_spool import find_spools, is_for_sink
from millstream.engine.delivery.sink_writers import create_spooling_writer
from millstream.engine.delivery.undelivered import missing_sink_error
from millstream.engine.failure_classifier import FailureKind, classify
from millstream.engine.sink_keys import sink_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from millstream.connectors.api.writer import WriteResult
    from millstream.engine.delivery.batch_spool import BatchSpool, SpooledBatch
    from millstream.engine.delivery.spooling_writer import SpoolingWriter
    from millstream.pipeline.model import Pipeline


def replay(
    spark: SparkSession,
    pipeline: Pipeline,
    queries: Sequence[str],
    sink: str | None,
    on_delivered: Callable[[SpooledBatch, WriteResult], None],
) -> int:
    """Deliver spooled batches one by one and return how many were written. The caller has the checkpoints' locks.

    Each goes through the sink's own writer under its own id, so that a batch that was already delivered changes
    nothing if the sink has a ledger: `on_delivered` receives it as skipped. The `on_error` of the sink's entry does
    not matter, except that `dead_letter_rows` isolates single rows. If killed halfway, the next replay continues.
    Raises `NotReady` if a sink is still down, `MillstreamError` if it refuses a batch, and `CheckpointMismatch` if
    the spec no longer has the sink, or if the sink skips a batch that it does not have.
    """
    written_count = 0
    for query in queries:
        for shelf in find_spools(pipeline, query):
            written_count += _replay_spool(spark, pipeline, shelf, sink, on_delivered)
    return written_count


def _replay_spool(
    spark: SparkSession,
    pipeline: Pipeline,
    shelf: BatchSpool,
    sink: str | None,
    on_delivered: Callable[[SpooledBatch, WriteResult], None],
) -> int:
    batches = [spooled for spooled in shelf.batches() if is_for_sink(spooled, sink)]
    if not batches:
        return 0
    writer = _writer(pipeline, batches, shelf)
    written_count = 0
    try:
        writer.open(spark, batches[0].rows(spark).schema)
        for batch in batches:
            try:
                result = writer.deliver(batch, spark)
            except CheckpointMismatch:
                # The message already names the batch.
                raise
            except Exception as error:
                # Turn any error of a sink into a sentence that names the batch.
                raise _refusal(batch, error) from error
            on_delivered(batch, result)
            written_count += not result.is_skipped
    finally:
        writer.close()
    return written_count


def _writer(pipeline: Pipeline, batches: Sequence[SpooledBatch], shelf: BatchSpool) -> SpoolingWriter:
    first = batches[0]
    query = pipeline.queries[first.query]
    keys = sink_keys(pipeline, first.query)
    if first.sink not in keys:
        raise missing_sink_error(pipeline, batches)
    identity = SinkIdentity(pipeline.name, first.query, first.query_id, first.sink, query.output_mode)
    return create_spooling_writer(pipeline, identity, query.to[keys.index(first.sink)], shelf, None)


def _refusal(batch: SpooledBatch, error: Exception) -> MillstreamError:
    failure = classify(None, error)
    message = (
        f"batch {batch.batch} of query '{batch.query}' cannot be delivered to {batch.sink}: {failure.message}"
    )
    error_class = NotReady if failure.cause is FailureKind.OUTAGE else MillstreamError
    return error_class(message, failure.fix or "delivered batches stay delivered; run the replay again")
