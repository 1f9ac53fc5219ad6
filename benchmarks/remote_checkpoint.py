"""The time of a batch with its checkpoint on S3, beside that of the same batch with a checkpoint in a local folder.

    python benchmarks/remote_checkpoint.py --rounds 20

A stream of JSON files, one a batch, with a watermark and a window in two partitions; its rows go nowhere. Both
queries run in turn in one warm JVM. The server is the local stack's (`millstream up --s3`), on this machine: Amazon's
takes longer for a request.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.devstack.stack import bucket_settings, stop, up
from millstream.devstack.supervisor.state import S3_SERVER
from millstream.spark.session import open_session, stop_session
from millstream.spark.settings import S3_CHECKPOINTS, S3_CLIENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The first batches load and compile classes.
WARM_UP = 3


def write_files(folder: Path, files: int) -> None:
    """Write files of 1000 records each, whose event times move on with each file."""
    folder.mkdir()
    for number in range(files):
        at = f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00Z"
        records = [json.dumps({"user": f"u{row % 50}", "at": at}) for row in range(1000)]
        (folder / f"{number:04}.json").write_text("\n".join(records), encoding="utf-8")


def measure(spark: SparkSession, source: Path, checkpoint: str) -> list[float]:
    """Return the milliseconds of each batch with rows, by Spark's own report, without the first ones."""
    stream = spark.readStream.schema("user STRING, at TIMESTAMP").option("maxFilesPerTrigger", 1)
    counted = stream.json(str(source)).withWatermark("at", "10 minutes").groupBy("user", "at").count()

    def take(batch: DataFrame, _: int) -> None:
        batch.write.format("noop").mode("overwrite").save()

    writer = counted.writeStream.outputMode("update").foreachBatch(take)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    reports = [report for report in query.recentProgress if report["numInputRows"]]
    return [float(report["durationMs"]["triggerExecution"]) for report in reports[WARM_UP:]]


def main() -> None:
    """Measure both in turn, print the median and the slowest tenth of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20, help="batches of each in a turn")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        bucket = up(Path(home), servers=(), with_s3=True, attached=True).s3
        conf = {
            **S3_CLIENT,
            **bucket_settings(Path(home)),
            **S3_CHECKPOINTS,
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.numRecentProgressUpdates": "1000",
        }
        spark = open_session("remote checkpoint", conf)
        source = Path(home, "in")
        write_files(source, options.rounds + WARM_UP)
        found: dict[str, list[float]] = {"local": [], "s3": []}
        for turn in range(options.turns + 1):
            for name, root in (("local", home), ("s3", bucket)):
                times = measure(spark, source, f"{root}/checkpoints/{uuid.uuid4().hex}")
                # The first turn warms the JVM up.
                found[name] += times if turn else []
        stop_session(spark)
        stop(Path(home), S3_SERVER)
    for name, times in found.items():
        slow = statistics.quantiles(times, n=10)[-1]
        print(
            f"{name:<6} median {statistics.median(times):6.0f} ms   90 % {slow:6.0f} ms   {len(times)} batches"
        )


if __name__ == "__main__":
    main()
