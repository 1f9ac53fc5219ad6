"""Watch the state that the queries of a run keep in memory: warn before it fills the heap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.pipeline.stateful import ROCKSDB, STORE
from millstream.spark import internals
from millstream.spark.settings import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from millstream.engine.events.event_bus import EventBus

# From this share of the heap a warning is given, and again when the state has doubled. A batch holds two versions of
# the state for a while: with an aggregation by a key, a heap of 512 MiB was full when the state had half of it.
WARNING = 0.33
# Bytes. As long as the state takes less than this, nobody asks for the size of the heap.
LEAST = 64 << 20
# How much the state grows until it is compared with the heap again.
GROWTH = 1.1


def watch_state(spark: SparkSession, events: EventBus) -> StateMemoryWatch:
    """Return a watch that compares state with the heap of the driver, or on a cluster with that of all executors."""
    context = spark.sparkContext
    if is_local(str(context.master)):
        runtime = internals.java_class(spark, "java.lang.Runtime").getRuntime()
        return StateMemoryWatch(lambda: int(runtime.maxMemory()), events)
    return StateMemoryWatch(
        lambda: internals.count_executors(context) * internals.executor_memory(context),
        events,
        is_local=False,
    )


class StateMemoryWatch:
    """Warns once when the state of the queries of a run takes much of the heap, and again when it has doubled.

    `read_heap` returns bytes: zero if no executor is registered.
    """

    def __init__(self, read_heap: Callable[[], int], events: EventBus, *, is_local: bool = True) -> None:
        self._read_heap, self._events = read_heap, events
        self._memory_setting = "spark.driver.memory" if is_local else "spark.executor.memory"
        self._states: dict[str, tuple[int, int]] = {}
        self._next_bytes = float(LEAST)

    def observe(self, query: str, metrics: Mapping[str, Any]) -> None:
        """Note the state after a batch, from the data of its event. State in RocksDB, on disk, does not count."""
        if metrics["state_store"] == "in_memory":
            self._states[query] = metrics["state_bytes"], metrics["state_rows"]
            self._compare()

    def forget(self, query: str) -> None:
        """Forget the state of a query that has ended."""
        self._states.pop(query, None)

    def _compare(self) -> None:
        total = sum(size for size, _ in self._states.values())
        if total < self._next_bytes:
            return
        heap = self._read_heap()
        self._next_bytes = GROWTH * total
        if heap and total >= WARNING * heap:
            self._next_bytes = 2.0 * total
            self._warn(total, heap)

    def _warn(self, total: int, heap: int) -> None:
        query = max(self._states, key=lambda name: self._states[name])
        size, rows = self._states[query]
        others = "" if size == total else f", and with the other queries {_format_size(total)}"
        self._events.emit(
            "warning",
            query,
            what=(
                f"keeps {_format_size(size)} of state ({rows:,} rows) in memory{others}, of a heap of "
                f"{_format_size(heap)}; when the heap is full, the run ends"
            ),
            fix=(
                f"raise {self._memory_setting}, or keep the state on disk: set {STORE} to {ROCKSDB}, and give the "
                "query a new checkpoint ('millstream explain state-store')"
            ),
            state_bytes=total,
            heap_bytes=heap,
        )


def _format_size(size: int) -> str:
    """Return a number of bytes in MiB or GiB: `1.5 GiB`."""
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.0f} MiB"
