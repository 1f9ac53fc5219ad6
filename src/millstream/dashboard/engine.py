"""Metrics of Spark and its JVM beside those of the run, by Prometheus' convention; read at most once a second."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLong
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.dashboard.names import Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Read = Callable[[], Mapping[str, float]]
    Sample = tuple[str, dict[str, str], float]

# A scrape within so many seconds of another gets the same figures.
FRESH = 1.0
# A JVM that collects garbage for longer leaves its figures out of one scrape.
PATIENCE = 2.0
_MIB = 2.0**20


@dataclass(frozen=True)
class From:
    """A metric, the names of Spark's that it comes from (groups are labels), and what makes its unit of theirs."""

    metric: Metric
    pattern: re.Pattern[str]
    scale: float = 1.0


def _of(name: str, kind: str, pattern: str, what: str, scale: float = 1.0) -> From:
    compiled = re.compile(pattern)
    return From(Metric(name, kind, ("pipeline", *compiled.groupindex), what), compiled, scale)


def _executor(name: str, theirs: str, what: str, scale: float = 1.0) -> From:
    return _of(f"spark_executor_{name}_total", "counter", rf"executor\.{theirs}", what, scale)


ENGINE = (
    _of("jvm_memory_used_bytes", "gauge", r"jvm\.(?P<area>heap|non-heap)\.used", "Memory of the JVM in use."),
    _of(
        "jvm_memory_committed_bytes",
        "gauge",
        r"jvm\.(?P<area>heap|non-heap)\.committed",
        "Memory that it holds.",
    ),
    _of(
        "jvm_memory_max_bytes",
        "gauge",
        r"jvm\.(?P<area>heap|non-heap)\.max",
        "The most that it may hold; absent without a bound.",
    ),
    _of(
        "jvm_memory_pool_used_bytes",
        "gauge",
        r"jvm\.pools\.(?P<pool>[^.]+)\.used",
        "Memory in use by the JVM's pool.",
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
        "Collections of garbage, by collector.",
    ),
    _of("jvm_gc_seconds_total", "counter", r"jvm\.(?P<gc>[^.]+)\.time", "Time spent on them.", 1e-3),
    _of("spark_jobs_active", "gauge", r"DAGScheduler\.job\.activeJobs", "Jobs that run."),
    _of("spark_jobs_total", "counter", r"DAGScheduler\.job\.allJobs", "Jobs since the start."),
    _of(
        "spark_stages",
        "gauge",
        r"DAGScheduler\.stage\.(?P<state>running|waiting|failed)Stages",
        "Stages by their state.",
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
        "The most that blocks may take.",
        _MIB,
    ),
    _of(
        "spark_storage_disk_used_bytes",
        "gauge",
        r"BlockManager\.disk\.diskSpaceUsed_MB",
        "Disk that blocks take.",
        _MIB,
    ),
    _of(
        "spark_listener_queue_size",
        "gauge",
        r"LiveListenerBus\.queue\.(?P<queue>[^.]+)\.size",
        "Events that wait in a queue of Spark's listener bus.",
    ),
    _of(
        "spark_listener_events_dropped_total",
        "counter",
        r"LiveListenerBus\.queue\.(?P<queue>[^.]+)\.numDroppedEvents(?:\.count)?",
        "Events that such a queue lost: batches may be missing from all other figures.",
    ),
    _of(
        "spark_listener_events_posted_total",
        "counter",
        r"LiveListenerBus\.numEventsPosted(?:\.count)?",
        "Events of the bus.",
    ),
    _of(
        "spark_executor_memory_bytes",
        "gauge",
        r"ExecutorMetrics\.(?P<kind>\w+Memory|ProcessTree\w+Memory)",
        "Memory of the executor in the driver's JVM, by what it is for; Spark measures it every ten seconds.",
    ),
    _of("spark_executor_tasks_active", "gauge", r"executor\.threadpool\.activeTasks", "Tasks that run."),
    _of(
        "spark_executor_tasks_total",
        "counter",
        r"executor\.threadpool\.completeTasks",
        "Tasks that have ended.",
    ),
    _executor("cpu_seconds", "cpuTime", "CPU time of tasks.", 1e-9),
    _executor("run_seconds", "runTime", "Time of tasks on the clock.", 1e-3),
    _executor("gc_seconds", "jvmGCTime", "Time in which tasks waited for collections of garbage.", 1e-3),
    _executor("records_read", "recordsRead", "Records that tasks read."),
    _executor("bytes_read", "bytesRead", "Bytes that tasks read from files."),
    _executor("records_written", "recordsWritten", "Records that tasks wrote."),
    _executor("bytes_written", "bytesWritten", "Bytes that tasks wrote to files."),
    _executor("shuffle_bytes_read", "shuffleTotalBytesRead", "Bytes of shuffles that tasks read."),
    _executor("shuffle_bytes_written", "shuffleBytesWritten", "Bytes of shuffles that tasks wrote."),
    _executor("memory_spilled_bytes", "memoryBytesSpilled", "Memory that tasks gave up to disk."),
    _executor("disk_spilled_bytes", "diskBytesSpilled", "Bytes that it took there."),
)
"""Every metric of the engine, in the order in which they are told; Spark's names are those of 4.2."""


class Engine:
    """Reads the engine's metrics for whoever asks, one call for all who ask within a second."""

    def __init__(self, read: Read) -> None:
        self._read = read
        # One thread: Py4J opens a connection for each.
        self._pool = ThreadPoolExecutor(1, "millstream-spark")
        self._lock = threading.Lock()
        self._kept: tuple[float, Future[Mapping[str, float]]] | None = None
        self._closed = False

    def close(self) -> None:
        """Read nothing more: Spark is about to stop."""
        with self._lock:
            self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def figures(self) -> Mapping[str, float]:
        """Spark's figures by its names, up to a second old; nothing where it does not answer in time."""
        with self._lock:
            if self._closed:
                return {}
            # One that is still under way is waited for: a second would wait behind it.
            if self._kept is None or (self._kept[1].done() and time.monotonic() - self._kept[0] > FRESH):
                self._kept = time.monotonic(), self._pool.submit(self._read)
            found = self._kept[1]
        try:
            return found.result(timeout=PATIENCE)
        except TooLong:
            return {}
        except Exception:  # noqa: BLE001 - a JVM that ends in the middle answers in many ways, none of them a figure
            return {}


def samples(figures: Mapping[str, float]) -> Iterator[tuple[str, Sample]]:
    """The samples of Spark's figures, each with the name of its metric."""
    for name, value in sorted(figures.items()):
        for one in ENGINE:
            found = one.pattern.fullmatch(name)
            # A size of -1 is none: the JVM's word for what has no bound.
            if found and value >= 0:
                labels = {label: text or "" for label, text in found.groupdict().items()}
                yield one.metric.name, ("", labels, value * one.scale)
