"""Two queries deliver to one Delta table what waited, at the same time."""

from __future__ import annotations

import json
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from delta_tables import read_rows
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta.sink import DeltaSink
from millstream.engine.delivery import spool_retry, spooling_writer
from millstream.engine.delivery.batch_spool import BatchSpool
from millstream.engine.delivery.spool_retry import SpoolRetry
from millstream.engine.delivery.spooling_writer import SpoolingWriter
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BATCHES = 3
# Seconds within which two threads deliver three small merges each.
LONG = 100.0


def is_delivered(shelf: BatchSpool) -> bool:
    """Wait until nothing waits any more; False when that takes too long."""
    until = time.monotonic() + LONG
    while shelf.has_batches() and time.monotonic() < until:
        threading.Event().wait(0.05)
    return not shelf.has_batches()


@pytest.mark.usefixtures("interpreted")
def test_merges_of_two_queries_into_one_table_keep_each_batch_under_its_own_query(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spooling_writer, "FIRST_PROBE", 0.0)
    monkeypatch.setattr(spooling_writer, "LAST_PROBE", 0.0)
    monkeypatch.setattr(spool_retry, "EVERY", 0.01)
    table = tmp_path / "table"
    schema = spark.createDataFrame([], "id string, query string, batch int")
    schema.write.format("delta").save(str(table))
    sink = DeltaSink.model_validate({"path": str(table), "merge_on": ["id"]})
    shelves, threads = [], []
    queries = ("first", "second")
    for query in queries:
        identity = SinkIdentity("shop", query, f"checkpoint-{query}", "delta:table", OutputMode.UPDATE)
        shelf = BatchSpool(tmp_path / query / identity.query_id / "delta")
        for batch in range(BATCHES):
            rows = spark.range(1).selectExpr(
                f"'{query} {batch}' AS id", f"'{query}' AS query", f"{batch} AS batch"
            )
            shelf.spool(rows, batch, "away")
        writer = SpoolingWriter(identity, partial(sink.writer, identity), shelf, None)
        writer.open(spark, schema.schema)
        shelves.append(shelf)
        threads.append(SpoolRetry(query, [writer]))

    for thread in threads:
        thread.start(spark)
    delivered = [is_delivered(shelf) for shelf in shelves]
    for thread in threads:
        thread.close()

    assert delivered == [True, True]
    assert sorted(read_rows(table, "query", "batch")) == sorted(
        (query, batch) for query in queries for batch in range(BATCHES)
    )
    merges = [commit for commit in DeltaTable(table).history() if commit["operation"] == "MERGE"]
    positions = [json.loads(commit["userMetadata"]) for commit in merges]
    assert sorted((mark["query"], mark["batch_id"]) for mark in positions) == sorted(
        (query, batch) for query in queries for batch in range(BATCHES)
    )
