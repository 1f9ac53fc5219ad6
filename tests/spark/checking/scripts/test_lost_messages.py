"""MS553 says where an invalid message ends: in the sink as NULLs, or nowhere, as a window drops its row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.check import check_script

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SCRIPT = """from pyspark.sql import SparkSession
from pyspark.sql import functions as F
spark = SparkSession.builder.getOrCreate()
topic = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:1").option("subscribe", "t").load()
decoded = F.from_json(F.col("value").cast("string"), "berth STRING, ts TIMESTAMP").alias("d")
ships = topic.select(decoded, "timestamp").select("d.*", "timestamp").withWatermark("EVENT", "1 minute")
counts = ships.groupBy("berth", F.WINDOW).count()
counts.writeStream.option("checkpointLocation", "s3a://b/cp").start("s3a://b/out").awaitTermination()
"""


@pytest.mark.parametrize(
    "window",
    [
        'window("EVENT", "5 minutes")',
        'window("EVENT", "5 minutes", "1 minute")',
        'session_window("EVENT", "5 minutes")',
    ],
    ids=["tumbling", "sliding", "session"],
)
@pytest.mark.parametrize(
    ("time", "end"),
    [("ts", "as a window drops rows without a time"), ("timestamp", "and NULLs go into the sink")],
)
def test_a_window_drops_a_message_only_by_a_time_inside_it(
    spark: SparkSession, tmp_path: Path, window: str, time: str, end: str
) -> None:
    file = tmp_path / "job.py"
    file.write_text(SCRIPT.replace("WINDOW", window).replace("EVENT", time))

    whys = [finding.why or "" for finding in check_script(spark, file).findings if finding.code == "MS553"]

    assert [why.rpartition("the message is lost, ")[2] for why in whys] == [end]
