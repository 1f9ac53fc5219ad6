"""Deliver what was set aside for sinks, in order, while no run does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.sink import SinkIdentity
from millstream.diagnostics.failure import MillstreamError, NotReady, WrongUse
from millstream.runtime.aside import shelves, wanted
from millstream.runtime.deferred import DeferredWriter
from millstream.runtime.failures import Cause, classify
from millstream.runtime.hooks import bound
from millstream.runtime.recording import sink_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline
    from millstream.runtime.aside import SetAside, Shelf


def replay(
    spark: SparkSession,
    pipeline: Pipeline,
    queries: Sequence[str],
    sink: str | None,
    told: Callable[[SetAside], None],
) -> int:
    """Deliver what waits, batch by batch; gives how many. The caller holds the checkpoints' locks.

    Each goes through the sink's own writer with its own number, so that one that was delivered already changes
    nothing where the sink remembers numbers. Killed in the middle, the next replay goes on. Raises `NotReady` when a
    sink is still away, `MillstreamError` when it refuses a batch, `WrongUse` when the spec has no such sink any more.
    """
    done = 0
    for query in queries:
        for shelf in shelves(pipeline, query):
            done += _shelf(spark, pipeline, shelf, sink, told)
    return done


def _shelf(
    spark: SparkSession, pipeline: Pipeline, shelf: Shelf, sink: str | None, told: Callable[[SetAside], None]
) -> int:
    batches = [one for one in shelf.batches() if wanted(one, sink)]
    if not batches:
        return 0
    writer = _writer(pipeline, batches[0], shelf)
    try:
        writer.open(spark, batches[0].rows(spark).schema)
        for batch in batches:
            try:
                writer.deliver(batch, spark)
            except Exception as error:
                # Whatever a sink raises becomes a sentence with the batch in it.
                raise _refusal(batch, error) from error
            told(batch)
    finally:
        writer.close()
    return len(batches)


def _writer(pipeline: Pipeline, batch: SetAside, shelf: Shelf) -> DeferredWriter:
    query = pipeline.queries[batch.query]
    keys = sink_keys(pipeline, batch.query)
    if batch.sink not in keys:
        raise WrongUse(
            f"query '{batch.query}' has no sink '{batch.sink}', for which batches are set aside",
            f"give it that sink for the time of the replay; it has {', '.join(keys)}",
        )
    entry = query.to[keys.index(batch.sink)]
    identity = SinkIdentity(pipeline.name, batch.query, batch.query_id, batch.sink, query.output_mode)
    return DeferredWriter(identity, lambda: bound(entry.sink, pipeline.folder).writer(identity), shelf, None)


def _refusal(batch: SetAside, error: Exception) -> MillstreamError:
    failure = classify(None, error)
    said = (
        f"batch {batch.batch} of query '{batch.query}' cannot be delivered to {batch.sink}: {failure.message}"
    )
    kind = NotReady if failure.cause is Cause.OUTAGE else MillstreamError
    return kind(said, failure.fix or "what is delivered stays delivered; run the replay again")
