"""Read Spark's own metrics and those of its JVM, all in one call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

# Sources of Spark's metrics system in a driver. A missing source is skipped. `executor` exists if tasks run in the
# driver's own JVM.
SOURCES = ("DAGScheduler", "BlockManager", "LiveListenerBus", "executor", "ExecutorMetrics")


class Gauges:
    """The metrics of one session, by source and name: `jvm.heap.used`, `DAGScheduler.job.activeJobs`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._servlet: Any = None

    def read(self) -> Mapping[str, float]:
        """Return gauges and counters that are numbers, with their current values. Raises Py4J's exceptions.

        Each read is one JVM call. The first one also discovers the available metrics.
        """
        if self._servlet is None:
            self._servlet = self._open_servlet()
        return parse_metrics(self._servlet.getMetricsSnapshot(None))

    def _open_servlet(self) -> Any:
        """Create Spark's own servlet over a registry of all metrics, without a server. It writes them as JSON."""
        jvm: Any = internals.jvm(self._spark)
        registry = jvm.com.codahale.metrics.MetricRegistry()
        # Created here, because Spark has its own only if a metrics configuration file asks for it.
        registry.registerAll("jvm", jvm.org.apache.spark.metrics.source.JvmSource().metricRegistry())
        system = jvm.org.apache.spark.SparkEnv.get().metricsSystem()
        for name in SOURCES:
            sources = system.getSourcesByName(name)
            if sources.size():
                registry.registerAll(name, sources.apply(0).metricRegistry())
        return jvm.org.apache.spark.metrics.sink.MetricsServlet(jvm.java.util.Properties(), registry)


def parse_metrics(text: str) -> dict[str, float]:
    """Return the gauges and counters in a registry's JSON."""
    snapshot = json.loads(text)
    values = {name: metric.get("value") for name, metric in snapshot.get("gauges", {}).items()}
    values |= {name: metric.get("count") for name, metric in snapshot.get("counters", {}).items()}
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
