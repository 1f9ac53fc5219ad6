"""Read metrics of Spark and its JVM at most once per second, and name them by the conventions of Prometheus."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLong
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.dashboard.export.metric_definitions import Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Read = Callable[[], Mapping[str, float]]
    Sample = tuple[str, dict[str, str], float]

# Scrapes within this many seconds get the same figures.
FRESH = 1.0
# Seconds to wait for the JVM. If it collects garbage for longer, one scrape lacks its figures.
PATIENCE = 2.0
_MIB = 2.0**20


@dataclass(frozen=True)
class MetricMapping:
    """A metric, the pattern of its names in Spark (groups become labels), and the factor to its unit."""

    metric: Metric
    pattern: re.Pattern[str]
    scale: float = 1.0


def _of(name: str, kind: str, pattern: str, meaning: str, scale: float = 1.0) -> MetricMapping:
    compiled = re.compile(pattern)
    return MetricMapping(Metric(name, kind, ("pipeline", *compiled.groupindex), meaning), compiled, scale)


def _executor(name: str, spark_name: str, meaning: str, scale: float = 1.0) -> MetricMapping:
    return _of(f"spark_executor_{name}_total", "counter", rf"executor\.{spark_name}", meaning, scale)


ENGINE = (
    _of("jvm_memory_used_bytes", "gauge", r"jvm\.(?P<area>heap|non-heap)\.used", "Memory of the JVM in use."),
    _of(
        "jvm_memory_committed_bytes",
        "gauge",
        r"jvm\.(?P<area>heap|non-heap)\.committed",
        "Memory committed for the JVM.",
    ),
    _of(
        "jvm_memory_max_bytes",
        "gauge",
        r"jvm\.(?P<area>heap|non-heap)\.max",
        "Maximum memory of the JVM; absent without a limit.",
    ),
    _of(
        "jvm_memory_pool_used_bytes",
        "gauge",
        r"jvm\.pools\.(?P<pool>[^.]+)\.used",
        "Memory of the JVM in use, by pool.",
    ),
    _of(
        "jvm_buffer_used_bytes",
        "gauge",
        r"jvm\.(?P<pool>direct|mapped)\.used",
        "Memory of buffers outside the heap.",
    ),
    _of(
        "jvm_gc_collections_total",
        "counter",
        r"jvm\.(?P<gc>(?!direct|mapped)[^.]+)\.count",
        "Garbage collections, by collector.",
    ),
    _of(
        "jvm_gc_seconds_total",
        "counter",
        r"jvm\.(?P<gc>[^.]+)\.time",
        "Time spent on garbage collections, by collector.",
        1e-3,
    ),
    _of("spark_jobs_active", "gauge", r"DAGScheduler\.job\.activeJobs", "Running jobs."),
    _of("spark_jobs_total", "counter", r"DAGScheduler\.job\.allJobs", "Jobs since the start of the session."),
    _of(
        "spark_stages",
        "gauge",
        r"DAGScheduler\.stage\.(?P<state>running|waiting|failed)Stages",
        "Stages by state.",
    ),
    _of(
        "spark_storage_memory_used_bytes",
        "gauge",
        r"BlockManager\.memory\.memUsed_MB",
        "Memory of cached and broadcast blocks.",
        _MIB,
    ),
    _of(
        "spark_storage_memory_max_bytes",
        "gauge",
        r"BlockManager\.memory\.maxMem_MB",
        "Maximum memory for cached and broadcast blocks.",
        _MIB,
    ),
    _of(
        "spark_storage_disk_used_bytes",
        "gauge",
        r"BlockManager\.disk\.diskSpaceUsed_MB",
        "Disk space of cached blocks.",
        _MIB,
    ),
    _of(
        "spark_listener_queue_size",
        "gauge",
        r"LiveListenerBus\.queue\.(?P<queue>[^.]+)\.size",
        "Events waiting in a queue of Spark's listener bus.",
    ),
    _of(
        "spark_listener_events_dropped_total",
        "counter",
        r"LiveListenerBus\.queue\.(?P<queue>[^.]+)\.numDroppedEvents(?:\.count)?",
        "Events that a queue of the listener bus dropped; batches may be missing from all other figures.",
    ),
    _of(
        "spark_listener_events_posted_total",
        "counter",
        r"LiveListenerBus\.numEventsPosted(?:\.count)?",
        "Events posted to the listener bus.",
    ),
    _of(
        "spark_executor_memory_bytes",
        "gauge",
        r"ExecutorMetrics\.(?P<kind>\w+Memory|ProcessTree\w+Memory)",
        "Memory of the executor in the driver's JVM, by purpose; Spark measures it every ten seconds.",
    ),
    _of("spark_executor_tasks_active", "gauge", r"executor\.threadpool\.activeTasks", "Running tasks."),
    _of(
        "spark_executor_tasks_total",
        "counter",
        r"executor\.threadpool\.completeTasks",
        "Completed tasks.",
    ),
    _executor("cpu_seconds", "cpuTime", "CPU time of tasks.", 1e-9),
    _executor("run_seconds", "runTime", "Wall-clock time of tasks.", 1e-3),
    _executor("gc_seconds", "jvmGCTime", "Time that tasks waited for garbage collections.", 1e-3),
    _executor("records_read", "recordsRead", "Records that tasks read."),
    _executor("bytes_read", "bytesRead", "Bytes that tasks read from files."),
    _executor("records_written", "recordsWritten", "Records that tasks wrote."),
    _executor("bytes_written", "bytesWritten", "Bytes that tasks wrote to files."),
    _executor("shuffle_bytes_read", "shuffleTotalBytesRead", "Shuffle bytes that tasks read."),
    _executor("shuffle_bytes_written", "shuffleBytesWritten", "Shuffle bytes that tasks wrote."),
    _executor(
        "memory_spilled_bytes", "memoryBytesSpilled", "Bytes in memory of the data that tasks spilled."
    ),
    _executor("disk_spilled_bytes", "diskBytesSpilled", "Bytes on disk of the data that tasks spilled."),
)
"""All metrics of the engine, in the order of the output, from the names of Spark 4.2."""


class Engine:
    """Reads the engine's metrics, with one call for all requests within a second."""

    def __init__(self, read: Read) -> None:
        self._read_metrics = read
        # One thread, because Py4J opens a connection per thread.
        self._pool = ThreadPoolExecutor(1, "millstream-spark")
        self._lock = threading.Lock()
        self._cached: tuple[float, Future[Mapping[str, float]]] | None = None
        self._closed = False

    def close(self) -> None:
        """Stop reading, because Spark is about to stop."""
        with self._lock:
            self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def figures(self) -> Mapping[str, float]:
        """Return Spark's figures by its names, up to a second old; empty if Spark does not respond in time."""
        with self._lock:
            if self._closed:
                return {}
            # Reuse a read in progress, because a second one would only wait behind it.
            if self._cached is None or (
                self._cached[1].done() and time.monotonic() - self._cached[0] > FRESH
            ):
                self._cached = time.monotonic(), self._pool.submit(self._read_metrics)
            future = self._cached[1]
        try:
            return future.result(timeout=PATIENCE)
        except TooLong:
            return {}
        except Exception:  # noqa: BLE001 - a JVM that is ending fails in many ways
            return {}


def spark_samples(figures: Mapping[str, float]) -> Iterator[tuple[str, Sample]]:
    """Yield the samples of Spark's figures, each with the name of its metric."""
    for name, value in sorted(figures.items()):
        for source in ENGINE:
            match = source.pattern.fullmatch(name)
            # The JVM reports -1 for no limit.
            if match and value >= 0:
                labels = {label: text or "" for label, text in match.groupdict().items()}
                yield source.metric.name, ("", labels, value * source.scale)
