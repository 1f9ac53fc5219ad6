"""What it costs to hear of each batch: PySpark's listener of queries and Millstream's, compared with none.

    python benchmarks/query_reports.py [--batches 60] [--rounds 5]

One query of an aggregation, ten rows a batch, in one session; the variants take turns. CPU is that of Python and the
JVM. `--names again` lets Py4J ask the JVM for each Java name each time, as it does by itself.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import cpu_seconds

from millstream.engine.events.event_bus import EventBus
from millstream.engine.events.progress_listener import Listener, extract_metrics
from millstream.engine.state_memory_watch import StateMemoryWatch
from millstream.spark import internals, session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

NONE, PYSPARK, OURS = "none", "PySpark's", "Millstream's"


def run_batches(spark: SparkSession, folder: Path, batches: int) -> float:
    """CPU milliseconds of a batch of a query that ends after so many."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    counts = rows.withWatermark("timestamp", "1 minute").groupBy("value").count()
    writer = counts.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(folder))
    query = writer.queryName("reports").start()
    while (report := query.lastProgress) is None or report.batchId < 5:
        query.awaitTermination(1)
    first, began = report.batchId, cpu_seconds()
    while (report := query.lastProgress) is not None and report.batchId < first + batches:
        query.awaitTermination(1)
    last, ended = query.lastProgress, cpu_seconds()
    query.stop()
    internals.wait_for_listeners(spark, 60_000)
    assert last is not None
    return (ended - began) / (last.batchId - first) * 1000


def with_pyspark(spark: SparkSession) -> Callable[[], None]:
    """Attach a listener of PySpark's that reads each report; returns what removes it."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Reader(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None: ...  # noqa: N802 - Spark's name, as those below

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            extract_metrics(json.loads(event.progress.json))

        def onQueryIdle(self, event: Any) -> None: ...  # noqa: N802

        def onQueryTerminated(self, event: Any) -> None: ...  # noqa: N802

    reader = Reader()
    spark.streams.addListener(reader)
    return lambda: spark.streams.removeListener(reader)


def with_ours(spark: SparkSession) -> Callable[[], None]:
    """Attach Millstream's listener; returns what removes it."""
    events = EventBus()
    attached = internals.add_query_listener(spark, Listener(events, StateMemoryWatch(lambda: 0, events)))

    def remove() -> None:
        internals.remove_query_listener(spark, attached)
        events.close()

    return remove


def main() -> None:
    """Measure in turn and print the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--names", choices=("once", "again"), default="once")
    asked = parser.parse_args()
    if asked.names == "again":
        session.remember_java_names = lambda: None
    spark = session.open_session("reports", {"spark.sql.shuffle.partitions": 2})
    attach = {NONE: lambda _: lambda: None, PYSPARK: with_pyspark, OURS: with_ours}
    found: dict[str, list[float]] = {name: [] for name in attach}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(asked.rounds + 1):
            for name, function in attach.items():
                remove = function(spark)
                cost = run_batches(spark, Path(folder) / f"{turn}-{name}", asked.batches)
                remove()
                if turn:  # the first round warms the JVM up
                    found[name].append(cost)
    spark.stop()
    print(f"names {asked.names}; CPU ms of a batch, median of {asked.rounds} rounds (min to max)")
    for name, costs in found.items():
        print(f"{name:14} {statistics.median(costs):6.1f} ({min(costs):.1f} to {max(costs):.1f})")


if __name__ == "__main__":
    main()
