"""What Spark's driver needs for many partitions and for many queries: time of a batch, CPU time, threads and heap.

    python benchmarks/driver_limits.py [--partitions 10 100 1000] [--queries 1 10 50 100] [--batches 6]

First one query of Spark's rate source with so many partitions, each of ten rows, then so many such queries of four
partitions at once, with a trigger of a second; all write nowhere. No Millstream: what it adds for each is in
`many_partitions.py`. The heap is what the JVM holds after a collection.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))
from measure import cpu_seconds
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

ROWS = 10
FEW = 4


class Batches(StreamingQueryListener):
    """Keeps the milliseconds of each batch, and tells when there are enough of each query."""

    def __init__(self, queries: int, batches: int) -> None:
        self.milliseconds: dict[str, list[int]] = {}
        self.enough = threading.Event()
        self._queries, self._batches = queries, batches

    def onQueryStarted(self, event: object) -> None:  # noqa: N802 - as Spark names it
        """Nothing."""

    def onQueryProgress(self, event: object) -> None:  # noqa: N802 - as Spark names it
        """Keep a batch, without the first of its query, which compiles."""
        progress = event.progress  # type: ignore[attr-defined]
        if progress.batchId > 0:
            self.milliseconds.setdefault(progress.name, []).append(progress.durationMs["triggerExecution"])
        if len(self.milliseconds) == self._queries and all(
            len(times) >= self._batches for times in self.milliseconds.values()
        ):
            self.enough.set()

    def onQueryTerminated(self, event: object) -> None:  # noqa: N802 - as Spark names it
        """Nothing."""


def start(spark: SparkSession, folder: Path, name: str, partitions: int) -> StreamingQuery:
    """Start a query with so many partitions that writes nowhere."""
    rows = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", ROWS * partitions)
        .option("numPartitions", partitions)
        .load()
    )
    writer = rows.writeStream.format("noop").queryName(name).trigger(processingTime="1 second")
    return writer.option("checkpointLocation", str(folder / name)).start()


def observe(spark: SparkSession, folder: Path, queries: int, partitions: int, batches: int) -> None:
    """Run so many queries until each has committed so many batches, and print the figures."""
    jvm = spark._jvm  # noqa: SLF001 - PySpark has no other way to the JVM's own figures
    assert jvm is not None
    heard = Batches(queries, batches)
    spark.streams.addListener(heard)
    began = cpu_seconds()
    started = [
        start(spark, folder, f"q{queries}x{partitions}_{number}", partitions) for number in range(queries)
    ]
    heard.enough.wait()
    spent = cpu_seconds() - began
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    heap = (runtime.totalMemory() - runtime.freeMemory()) / 2**20
    threads = jvm.Thread.getAllStackTraces().size()
    for query in started:
        query.stop()
    spark.streams.removeListener(heard)
    times = [time for own in heard.milliseconds.values() for time in own]
    print(
        f"{queries:>4} queries x {partitions:>5,} partitions: median batch {statistics.median(times):,.0f} ms, "
        f"{1000 * spent / len(times):,.0f} ms of CPU a batch, {threads} threads, {heap:,.0f} MiB of heap",
        flush=True,
    )


def main() -> int:
    """Observe all sizes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 10, 50, 100])
    parser.add_argument("--batches", type=int, default=6, help="of each query, after its first")
    chosen = parser.parse_args()
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    # A query that is stopped in a batch logs an error; one that counts here is a dropped event of the listener bus.
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        for partitions in chosen.partitions:
            observe(spark, Path(folder), 1, partitions, chosen.batches)
        for queries in chosen.queries:
            observe(spark, Path(folder), queries, FEW, chosen.batches)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
