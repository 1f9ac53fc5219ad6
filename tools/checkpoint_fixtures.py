"""Write tiny checkpoints with the PySpark that runs this script, for the tests of upgrades.

    python tools/checkpoint_fixtures.py FOLDER

Needs nothing but PySpark, of any version from 3.5 on. FOLDER gets one checkpoint for each query. Run it once in an
environment of each version, into `tests/unit/plan/checkpoints/spark-<version>`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

_ROWS = (
    [{"id": "a", "k": "x", "v": 1, "at": "2026-01-01T12:01:00Z"}],
    [{"id": "b", "k": "y", "v": 2, "at": "2026-01-01T12:30:00Z"}],
)
_SCHEMA = "id string, k string, v bigint, at timestamp"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def write_checkpoints(spark: SparkSession, target: Path, work: Path) -> None:
    """Run each query over two files, and copy its checkpoint without checksum files and paths of this machine."""
    for number, rows in enumerate(_ROWS):
        (work / "in").mkdir(exist_ok=True)
        (work / "in" / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reader = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1)
    orders = reader.json(str(work / "in")).withWatermark("at", "10 minutes")
    left, right = (
        orders.alias("l"),
        reader.json(str(work / "in")).withWatermark("at", "10 minutes").alias("r"),
    )
    queries = {
        "rows": orders.select("id", "v"),
        "windows": orders.groupBy(F.window("at", "10 minutes"), "k").count(),
        "unique": orders.dropDuplicates(["id", "at"]),
        "pairs": left.join(right, F.expr("l.id = r.id AND r.at >= l.at AND r.at <= l.at + INTERVAL 1 HOUR")),
        "rocksdb": orders.groupBy("k").count(),
    }
    for name, frame in queries.items():
        spark.conf.unset(PROVIDER)
        if name == "rocksdb":
            spark.conf.set(PROVIDER, ROCKSDB)
        mode = "update" if name == "rocksdb" else "append"
        writer = frame.writeStream.outputMode(mode).format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(work / name)).start()
        query.awaitTermination()
        query.stop()
        shutil.copytree(work / name, target / name, ignore=shutil.ignore_patterns("*.crc", "*.zip"))
        for log in (target / name / "sources").rglob("[0-9]*"):
            if log.is_file():
                log.write_text(re.sub(r'file:[^"]*/', "file:///data/in/", log.read_text()))


def main(target: Path) -> None:
    """Start Spark with one partition, so that the checkpoints have few files."""
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    with tempfile.TemporaryDirectory() as work:
        write_checkpoints(spark, target, Path(work))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
