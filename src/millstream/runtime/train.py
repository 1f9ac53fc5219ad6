"""Make a class-data archive: run what pipelines run, once, in a JVM that notes each class it loads.

Started in the background by `archive.train_later`: python -m millstream.runtime.train ARCHIVE
Without an argument, at once and only where there is none: for whoever is about to start many JVMs, such as tests.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.runtime import archive, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A person's first run has its first batches behind it by then; this one is in nobody's way.
DELAY = 20.0

# Writing the archive took 9 s on an idle machine; at the lowest priority it takes what it takes.
PATIENCE = 300.0

ROWS = [{"key": f"k{n % 3}", "value": n, "at": f"2026-01-01T12:00:{n:02d}Z"} for n in range(20)]
SCHEMA = "key STRING, value BIGINT, at TIMESTAMP"


def train(target: Path) -> bool:
    """Make the archive `target`; False when another process is at it or the JVM wrote none."""
    with target.with_suffix(".tried").open("w") as alone:
        try:
            fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        draft = target.with_suffix(f".{os.getpid()}")
        with tempfile.TemporaryDirectory(prefix="millstream-train-") as scratch:
            log = target.parent / "train.log"
            spark = session.boot_training((f"-XX:ArchiveClassesAtExit={draft}",), log)
            _work(spark, Path(scratch))
            spark.stop()
            written = session.end(PATIENCE) and draft.is_file()
        if not written:
            draft.unlink(missing_ok=True)
            return False
        archive.adopt(draft, target)
        target.with_suffix(".tried").unlink(missing_ok=True)
    return True


def _work(spark: SparkSession, scratch: Path) -> None:
    """A stream with a window, a join, state and several sinks, then the connectors' own classes."""
    incoming = scratch / "in"
    incoming.mkdir()
    (incoming / "a.json").write_text("\n".join(map(json.dumps, ROWS)))
    spark.createDataFrame([("k0", 1.5), ("k1", 2.5)], "key STRING, price DOUBLE").write.parquet(
        f"{scratch}/s"
    )
    spark.readStream.schema(SCHEMA).json(str(incoming)).withWatermark("at", "1 minute").createTempView("rows")
    spark.read.parquet(f"{scratch}/s").createTempView("prices")
    counted = spark.sql(
        "SELECT window(at, '5 seconds') AS w, key, count(*) AS n, sum(value) AS total FROM rows GROUP BY 1, 2"
    )
    joined = spark.sql(
        "SELECT r.*, p.price, to_json(struct(r.*)) AS raw FROM rows r LEFT JOIN prices p USING (key)"
    )
    deduplicated = joined.dropDuplicatesWithinWatermark(["key", "value"])
    for at, (frame, mode) in enumerate(((counted, "update"), (deduplicated, "append"))):
        started = frame.writeStream.outputMode(mode).option("checkpointLocation", f"{scratch}/c{at}")
        started = started.foreachBatch(partial(_sinks, path=f"{scratch}/t{at}"))
        started.trigger(availableNow=True).start().awaitTermination()
    _connectors(spark)


def _sinks(batch: DataFrame, _: int, path: str) -> None:
    batch.persist()
    batch.write.format("delta").mode("append").save(f"{path}-delta")
    batch.write.mode("append").partitionBy("key").parquet(f"{path}-parquet")
    batch.sparkSession.read.format("delta").load(f"{path}-delta").createOrReplaceTempView("target")
    batch.createOrReplaceTempView("source")
    batch.sparkSession.sql(
        f"MERGE INTO delta.`{path}-delta` t USING source s ON t.key = s.key AND false"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    batch.toArrow()
    batch.unpersist()


def _connectors(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    jvm.java.lang.Class.forName("org.postgresql.Driver")
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:1")
    for limit in ("default.api.timeout.ms", "request.timeout.ms"):
        reader = reader.option(f"kafka.{limit}", "1000")
    # No broker answers there; the client's classes are loaded all the same.
    with contextlib.suppress(Exception):
        reader.option("subscribe", "none").load().selectExpr("from_json(string(value), 'a INT')").collect()


def now() -> bool:
    """Make the archive of this machine's Java, unless it is there or there can be none."""
    target = session.archive_place()
    return target is None or bool(archive.flags(target)) or train(target)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(0 if now() else 1)
    time.sleep(DELAY)
    sys.exit(0 if train(Path(sys.argv[1])) else 1)
