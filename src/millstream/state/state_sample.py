"""Look at a query's state: the number of keys by partition, and some keys with their values, of each store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millstream.checkpoint import metadata
from millstream.diagnostics.failure import NotReady
from millstream.spark import internals
from millstream.state.read_state import measure_stores, read_store
from millstream.state.stores import list_stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.pipeline.model import Pipeline


def sample_query(pipeline: Pipeline, query: str, limit: int) -> list[dict[str, Any]]:
    """Return `sample_stores` of a query, read with the Spark of this process."""
    spark = internals.default_session()
    if spark is None:
        raise NotReady("Spark has not started yet", "wait for the first batch")
    # The settings of the run's own session follow its batches.
    return sample_stores(spark.newSession(), pipeline.checkpoint_folder(query), limit)


def sample_stores(spark: SparkSession, folder: CheckpointPath, limit: int) -> list[dict[str, Any]]:
    """Return each store of a checkpoint with its partitions and up to `limit` keys; empty without state.

    `partitions` are numbers of keys after the newest batch, `growth` is their sum's over the last `batches`.
    """
    samples = []
    for store in list_stores(spark, folder, metadata.read(folder)):
        sizes = measure_stores(spark, folder, store)
        frame = read_store(spark, folder, store)
        rows = [[format_state_value(value) for value in row] for row in frame.limit(limit).collect()]
        samples.append(
            {
                "operator": store.operator,
                "state": store.label,
                "batch": store.last_batch,
                "partitions": [size["keys"] for size in sizes],
                "growth": sum(size["growth"] for size in sizes),
                "batches": sizes[0]["batches"] if sizes else 0,
                "columns": frame.columns,
                "rows": rows,
            }
        )
    return samples


def format_state_value(value: Any) -> Any:
    """Return a window as `start - end`, other structures as JSON."""
    if hasattr(value, "asDict"):
        fields = value.asDict(recursive=True)
        if list(fields) == ["start", "end"]:
            return f"{fields['start']} - {fields['end']}"
        return json.dumps(fields, default=str)
    return value
