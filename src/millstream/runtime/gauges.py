"""Spark's own metrics and those of its JVM, all of them by one call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

# Sources of Spark's metrics system that a driver has; a source that is not there is passed over. `executor` is there
# where tasks run in the driver's own JVM.
SOURCES = ("DAGScheduler", "BlockManager", "LiveListenerBus", "executor", "ExecutorMetrics")


class Gauges:
    """The metrics of one session, by source and name: `jvm.heap.used`, `DAGScheduler.job.activeJobs`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._servlet: Any = None

    def read(self) -> Mapping[str, float]:
        """Gauges and counters that are numbers, as they stand. Raises what Py4J raises.

        One call of the JVM; the first finds out what there is to read.
        """
        if self._servlet is None:
            self._servlet = self._open()
        return numbers(self._servlet.getMetricsSnapshot(None))

    def _open(self) -> Any:
        """Spark's own servlet over a registry of all, without a server: it writes them as JSON."""
        jvm: Any = self._spark.sparkContext._jvm
        registry = jvm.com.codahale.metrics.MetricRegistry()
        # Made here: Spark has its own only where a file of its metrics system asks for it.
        registry.registerAll("jvm", jvm.org.apache.spark.metrics.source.JvmSource().metricRegistry())
        system = jvm.org.apache.spark.SparkEnv.get().metricsSystem()
        for name in SOURCES:
            found = system.getSourcesByName(name)
            if found.size():
                registry.registerAll(name, found.apply(0).metricRegistry())
        return jvm.org.apache.spark.metrics.sink.MetricsServlet(jvm.java.util.Properties(), registry)


def numbers(text: str) -> dict[str, float]:
    """The gauges and counters of a registry as its JSON has them."""
    told = json.loads(text)
    found = {name: one.get("value") for name, one in told.get("gauges", {}).items()}
    found |= {name: one.get("count") for name, one in told.get("counters", {}).items()}
    return {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
