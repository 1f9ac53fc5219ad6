"""What a batch costs with its checkpoint on HDFS or S3, beside the same batch with one in a local folder.

    python benchmarks/remote_checkpoint.py --rounds 20

A stream of JSON files, one a batch, with a watermark and a window in two partitions; its rows go nowhere. The three
queries run in turn in one warm JVM. The servers are the local stack's (`millstream up --hdfs --s3`), on this machine:
Amazon's takes longer for a request. Milliseconds are those of the batch as Spark reports it; CPU is user and system
time of this process and Spark's JVM over a whole turn, without the servers, for each of its batches.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from measure import children, cpu_seconds

from millstream.devstack.servers.hdfs import SERVERS as HDFS_SERVERS
from millstream.devstack.stack import bucket_settings, stop, up
from millstream.devstack.supervisor.state import S3_SERVER
from millstream.spark.session import open_session, stop_session
from millstream.spark.settings import S3_CHECKPOINTS, S3_CLIENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The first batches load and compile classes.
WARM_UP = 3


@dataclass
class Place:
    """A folder for checkpoints, the milliseconds of each batch there, and the mean CPU milliseconds of each turn."""

    name: str
    root: str
    times: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def write_files(folder: Path, files: int) -> None:
    """Write files of 1000 records each, whose event times move on with each file."""
    folder.mkdir()
    for number in range(files):
        at = f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00Z"
        records = [json.dumps({"user": f"u{row % 50}", "at": at}) for row in range(1000)]
        (folder / f"{number:04}.json").write_text("\n".join(records), encoding="utf-8")


def measure(spark: SparkSession, source: Path, checkpoint: str) -> list[float]:
    """Return the milliseconds of each batch with rows, by Spark's own report."""
    stream = spark.readStream.schema("user STRING, at TIMESTAMP").option("maxFilesPerTrigger", 1)
    counted = stream.json(str(source)).withWatermark("at", "10 minutes").groupBy("user", "at").count()

    def take(batch: DataFrame, _: int) -> None:
        batch.write.format("noop").mode("overwrite").save()

    writer = counted.writeStream.outputMode("update").foreachBatch(take)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    reports = [report for report in query.recentProgress if report["numInputRows"]]
    return [float(report["durationMs"]["triggerExecution"]) for report in reports]


def main() -> None:
    """Measure the three in turn, and print the median, the slowest tenth and the CPU of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20, help="batches of each in a turn")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        stack = up(Path(home), servers=(), with_hdfs=True, with_s3=True, attached=True)
        servers = children()
        conf = {
            **S3_CLIENT,
            **bucket_settings(Path(home)),
            # On other file systems than S3 this class does what a run without it has there.
            **S3_CHECKPOINTS,
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.numRecentProgressUpdates": "1000",
        }
        spark = open_session("remote checkpoint", conf)
        source = Path(home, "in")
        write_files(source, options.rounds + WARM_UP)
        places = [Place("local", home), Place("hdfs", stack.hdfs), Place("s3", stack.s3)]
        load = os.getloadavg()[0]
        # The first turn warms the JVM up.
        for turn in range(options.turns + 1):
            for place in places:
                cpu = cpu_seconds(servers)
                times = measure(spark, source, f"{place.root}/checkpoints/{uuid.uuid4().hex}")
                if turn:
                    place.cpu.append((cpu_seconds(servers) - cpu) * 1000 / len(times))
                    place.times += times[WARM_UP:]
        stop_session(spark)
        for server in (*reversed(HDFS_SERVERS), S3_SERVER):
            stop(Path(home), server)
    print(f"load average {load:.1f} before, {os.getloadavg()[0]:.1f} after, of {os.cpu_count()} cores")
    for place in places:
        slow = statistics.quantiles(place.times, n=10)[-1]
        print(
            f"{place.name:<6} median {statistics.median(place.times):6.0f} ms   90 % {slow:6.0f} ms   "
            f"CPU {statistics.median(place.cpu):6.0f} ms   {len(place.times)} batches"
        )


if __name__ == "__main__":
    main()
