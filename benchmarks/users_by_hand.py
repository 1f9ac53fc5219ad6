"""The status of users in PySpark by hand: `transformWithState`, as the example user_status has it in a spec.

    python benchmarks/users_by_hand.py ACTIONS LAKE CHECKPOINT JARS

Reads all files of ACTIONS, a file a batch, ends when it has caught up, and prints a JSON line for each batch.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

if TYPE_CHECKING:
    from collections.abc import Iterator

    Rows = Iterator[Row]

SCHEMA = "user_id STRING, action STRING, event_time TIMESTAMP, offset BIGINT"
OUTPUT = "user_id STRING, status STRING, since TIMESTAMP"
STATE = "status STRING, at BIGINT, until BIGINT"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 60 * 60 * 1000
STATUS = {"sign_in": "signed in", "work": "busy", "pause": "idle"}
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "false",
}


class Status(StatefulProcessor):
    """The newest status of a user; gone an hour after the newest action."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.last = handle.getValueState("last", STATE)

    def handleInputRows(self, key: Any, rows: Rows, timerValues: Any) -> Rows:  # noqa: ARG002, N802, N803
        before, change = self.last.get(), None
        if before is not None:
            self.handle.deleteTimer(before[2])
        for row in sorted(rows, key=lambda row: row.offset):
            at = (_utc(row.event_time) - EPOCH) // timedelta(milliseconds=1)
            if before is not None and at < before[1]:
                continue
            if before is not None and at >= before[2]:
                before = None
            if row.action == "sign_out":
                before, change = None, _row(key[0], "gone", at)
                continue
            status = STATUS.get(row.action, before[0] if before else "signed in")
            if before is None or status != before[0]:
                change = _row(key[0], status, at)
            before = (status, at, at + HOUR)
        if before is None:
            self.last.clear()
        else:
            self.last.update(before)
            self.handle.registerTimer(before[2])
        if change is not None:
            yield change

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Rows:  # noqa: ARG002, N802, N803
        self.last.clear()
        yield _row(key[0], "gone", expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        pass


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _row(user: str, status: str, at: int) -> Row:
    return Row(user_id=user, status=status, since=EPOCH + timedelta(milliseconds=at))


def main(actions: str, lake: str, checkpoint: str, jars: str) -> None:
    builder = SparkSession.builder.appName("by hand").master("local[2]").config("spark.jars", jars)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(actions)
    result = (
        rows.withWatermark("event_time", "10 minutes")
        .groupBy("user_id")
        .transformWithState(Status(), OUTPUT, "Append", "EventTime")
    )
    query = (
        result.writeStream.format("delta")
        .outputMode("append")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(lake)
    )
    query.awaitTermination()
    for progress in query.recentProgress:
        state = progress["stateOperators"]
        messages = {
            "rows": progress["numInputRows"],
            "ms": progress["durationMs"]["triggerExecution"],
            "state_rows": sum(item["numRowsTotal"] for item in state),
            "state_bytes": sum(item["memoryUsedBytes"] for item in state),
        }
        print(json.dumps(messages))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
