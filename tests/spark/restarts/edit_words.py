"""Paths, verdicts and outcomes that the lists of changes share."""

from __future__ import annotations

from typing import Any

from restart_run import DELETE

__all__ = ["DELETE"]

SQL, MODE, ORDERS, PAYS = "views/result/sql", "queries/out/output_mode", "sources/orders", "sources/pays"
DELAY = f"{ORDERS}/watermark/delay_threshold"
OK, NOTE, AFRESH, WRONG, SPLIT, CANNOT = (
    "continues",
    "continues_with_note",
    "start_afresh",
    "silently_wrong",
    "repartition",
    "cannot_tell",
)
RIGHT, FALSE, REFUSED = "right", "wrong", "refused"
ZONE = "spark/spark.sql.session.timeZone"
PARTITIONS = "spark/spark.sql.shuffle.partitions"
STORE = "spark/spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MIN_MAX = "min(w) AS lo, max(w) AS hi"

Row = tuple[str, Any, str, str]
"""A change: its name, the new values by their paths or a text of the SQL, the verdict, and what Spark does."""
