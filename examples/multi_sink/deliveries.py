"""What a batch becomes in addition to its raw rows: totals by user in a Delta table, and a line in a Postgres log.

Both functions may get the same batch again: when the run died after they had written it and before Spark knew. So
both keep, with what they write, which batch it was. A batch id alone does not identify it forever, because a
fresh checkpoint counts from 0 again; `query_id`, which belongs to the checkpoint, and the number together do.

`Outbox` gets single rows and not batches. It has no number to keep; what it writes is named by a key of the row.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from millstream.connectors.foreach_batch.writer import Batch

OUTBOX = Path(__file__).parent / os.environ.get("LAKE", "lake") / "outbox"

TOTALS = """
CREATE TABLE IF NOT EXISTS delta.`{path}` (
  user_id STRING, event_count BIGINT, total_amount DOUBLE, query_id STRING, batch_id BIGINT
) USING DELTA
"""
ADD = """
MERGE INTO delta.`{path}` AS total USING {{added}} AS batch ON total.user_id <=> batch.user_id
WHEN MATCHED AND (total.query_id <> batch.query_id OR total.batch_id < batch.batch_id) THEN UPDATE SET
  event_count = total.event_count + batch.event_count,
  total_amount = coalesce(total.total_amount, 0) + coalesce(batch.total_amount, 0),
  query_id = batch.query_id,
  batch_id = batch.batch_id
WHEN NOT MATCHED THEN INSERT *
"""

LOG = """
CREATE TABLE IF NOT EXISTS batch_log (
  batch_id bigint, row_count bigint NOT NULL, total_amount double precision, "timestamp" timestamptz NOT NULL,
  query_id text, PRIMARY KEY (query_id, batch_id)
)
"""
LINE = """
INSERT INTO batch_log (batch_id, row_count, total_amount, "timestamp", query_id) VALUES (%s, %s, %s, now(), %s)
ON CONFLICT (query_id, batch_id) DO NOTHING
"""


def user_totals(frame: DataFrame, batch: Batch) -> None:
    """Add a batch to the totals of its users: a sum, so a batch that is added twice is wrong forever.

    One MERGE is one commit of the table: either all users of the batch have its number, or none. So the number in the
    row tells whether the batch is in it, and the condition skips a row that has it.
    """
    if frame.isEmpty():
        return
    path = Path(__file__).parent / batch.options["path"]
    added = frame.groupBy("user_id").agg(
        F.count("*").alias("event_count"),
        F.sum("amount").alias("total_amount"),
        F.lit(batch.query_id).alias("query_id"),
        F.lit(batch.batch_id).cast("bigint").alias("batch_id"),
    )
    spark = frame.sparkSession
    spark.sql(TOTALS.format(path=path))
    spark.sql(ADD.format(path=path), added=added)


def batch_log(frame: DataFrame, batch: Batch) -> None:
    """Write the batch's line, unless the table has it."""
    if frame.isEmpty():
        return
    rows, amount = frame.agg(F.count("*"), F.sum("amount")).first() or (0, None)
    with psycopg.connect(batch.options["url"]) as connection:
        connection.execute(LOG)
        connection.execute(LINE, [batch.batch_id, rows, amount, batch.query_id])


class Outbox:
    """A letter for each row, as a file whose name is the event's id: a row that comes again replaces its letter.

    Made once for each task. Spark may give a repeated batch's rows to other tasks, so the numbers that `open` gets
    tell no row that was seen; its key does.
    """

    def open(self, partition_id: int, epoch_id: int) -> bool:  # noqa: ARG002 - Spark's own names
        """Before the first row of a task: what a connection would be made here for all of them."""
        OUTBOX.mkdir(parents=True, exist_ok=True)
        return True

    def process(self, row: Row) -> None:
        """One row."""
        letter = {"to": row.user_id, "text": f"Thank you for your purchase of {row.amount:.2f}."}
        aside = OUTBOX / f"{row.event_id}.part"
        aside.write_text(json.dumps(letter), encoding="utf-8")
        # Whole or not at all: who reads the folder never sees half a letter.
        aside.rename(aside.with_suffix(".json"))

    def close(self, error: Exception | None) -> None:
        """After the last row, or after one that failed: what `open` has opened would be closed here."""
