"""A run warns before the state of its queries fills the heap."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.engine.state_memory_watch import GROWTH, LEAST, StateMemoryWatch

GIB = 1 << 30


class Run:
    """A watch over queries whose state a test sets, in a heap of four GiB."""

    def __init__(self, heap: int = 4 * GIB, *, is_local: bool = True) -> None:
        self.heap, self.looks = heap, 0
        self.warnings: list[tuple[str, dict[str, Any]]] = []
        self.watch = StateMemoryWatch(self.read_heap, self, is_local=is_local)  # type: ignore[arg-type]

    def read_heap(self) -> int:
        self.looks += 1
        return self.heap

    def emit(self, event: str, query: str = "", **data: Any) -> None:
        assert event == "warning"
        self.warnings.append((query, data))

    def commit(self, query: str, size: float, store: str | None = "in_memory") -> int:
        """Commit a batch after which a query has so much state. Returns the number of warnings so far."""
        data = {"state_store": store, "state_bytes": int(size), "state_rows": 1_500_000}
        self.watch.observe(query, data)
        return len(self.warnings)


def test_a_query_is_named_when_its_state_has_a_third_of_the_heap_and_when_it_has_doubled() -> None:
    run = Run()

    counts = [run.commit("sessions", share * 4 * GIB) for share in (0.2, 0.3, 0.34, 0.4, 0.6, 0.69, 0.7)]

    assert counts == [0, 0, 1, 1, 1, 2, 2]
    query, data = run.warnings[0]
    assert query == "sessions"
    assert data["what"] == (
        "keeps 1.4 GiB of state (1,500,000 rows) in memory, of a heap of 4.0 GiB; when the heap is full, the run ends"
    )
    assert data["fix"].startswith(
        "raise spark.driver.memory, or keep the state on disk: set spark.sql.streaming."
    )
    assert (data["state_bytes"], data["heap_bytes"]) == (int(0.34 * 4 * GIB), 4 * GIB)


def test_the_state_of_all_queries_counts_and_the_largest_is_named() -> None:
    run = Run()

    counts = [run.commit("a", 0.2 * 4 * GIB), run.commit("b", 0.1 * 4 * GIB), run.commit("c", 0.05 * 4 * GIB)]

    assert counts == [0, 0, 1]
    assert run.warnings[0][0] == "a"
    assert (
        "keeps 819 MiB of state (1,500,000 rows) in memory, and with the other queries 1.4 GiB"
        in (run.warnings[0][1]["what"])
    )


def test_the_state_of_a_query_that_has_ended_does_not_count() -> None:
    run = Run()
    run.commit("a", 0.2 * 4 * GIB)

    run.watch.forget("a")

    assert run.commit("b", 0.2 * 4 * GIB) == 0


@pytest.mark.parametrize("store", ["rocksdb", None])
def test_state_on_disk_and_no_state_do_not_count(store: str | None) -> None:
    run = Run()

    assert run.commit("a", 3 * GIB, store) == 0
    assert run.looks == 0


def test_the_heap_is_read_only_when_there_is_much_state_and_it_has_grown() -> None:
    run = Run()

    for size in (1000, LEAST - 1, LEAST, LEAST * GROWTH * 0.99, LEAST * GROWTH * 1.01):
        run.commit("a", size)

    assert run.looks == 2


def test_a_cluster_without_executors_is_not_compared_with_nothing() -> None:
    run = Run(heap=0, is_local=False)
    assert run.commit("a", GIB) == 0

    run.heap = 2 * GIB
    assert run.commit("a", 1.2 * GIB) == 1
    assert run.warnings[0][1]["fix"].startswith("raise spark.executor.memory, ")
