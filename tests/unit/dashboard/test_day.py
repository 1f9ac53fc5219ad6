"""A long run has a bound in memory and on disk, and opens again with the right sums, not every batch read."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from millstream.dashboard import runlog
from millstream.dashboard.feed import Feed
from millstream.dashboard.fold import begun
from millstream.dashboard.metrics import Counts
from millstream.dashboard.points import MOST
from millstream.dashboard.replay import opened
from millstream.dashboard.runlog import RunLog, brief, events
from millstream.runtime.events import Event
from unit.dashboard.conftest import START, at, batch, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUERIES = 10
"""Of the day that the bound is promised for."""
MEMORY = 150_000_000


def described() -> Event:
    queries = [{"name": "funnel", "trigger": "5 seconds", "trigger_seconds": 5.0, "sources": ["clicks"]}]
    graph = {"nodes": [], "edges": []}
    return Event(
        "described", "", {"pipeline": "shop", "millstream": "1", "graph": graph, "queries": queries}, at(0)
    )


def offsets(end: int) -> dict[str, dict[str, int]]:
    return {"clicks": {str(partition): end + partition for partition in range(8)}}


def one(number: int) -> Event:
    read = {
        "description": "KafkaV2[Subscribe[clicks]]",
        "startOffset": offsets(number),
        "endOffset": offsets(number + 1),
        "latestOffset": offsets(number + 2),
        "numInputRows": 100,
    }
    phases = dict.fromkeys(("addBatch", "latestOffset", "queryPlanning", "walCommit"), number % 97)
    more = {"newest": at(number), "watermark": at(number - 300), "state_rows": number, "state_bytes": number}
    return batch(number, number, sources=[read], duration_ms={**phases, "triggerExecution": 900}, **more)


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Feed]:
    """A feed with a log of small segments."""
    log = RunLog(tmp_path / "run", segment=20_000)
    made = Feed(begun("r1", at(0), live=True), counts=Counts(), log=log, clock=lambda: START)
    yield made
    made.close()


def test_memory_does_not_grow_once_the_history_is_full() -> None:
    feed = Feed(begun("r1", at(0), live=True), counts=Counts(), clock=lambda: START)
    feed.fold(described())
    tracemalloc.start()
    try:
        for number in range(2 * MOST):
            feed.fold(one(number))
        full, _ = tracemalloc.get_traced_memory()
        for number in range(2 * MOST, 3 * MOST):
            feed.fold(one(number))
        after, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # The stream's replay is shared by all queries, the rest is there for each.
    ring = sum(len(sent.data) + 200 for sent in feed._ring)
    assert after < full * 1.1
    assert ring + QUERIES * (most - ring) < MEMORY


def test_sums_survive_segments_that_are_thinned_or_not_read(
    fed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runlog, "WHOLE", 2)
    fed.fold(described())
    fed.fold(started())
    for number in range(1000):
        fed.fold(one(number))
    fed.fold(Event("query_stopped", "funnel", {"reason": "asked to end"}, at(1000)))
    fed.close()

    read = [event for _, event in brief(tmp_path / "run")]
    again = opened(tmp_path / "run", "r1").document()

    batches = [event.data["batch"] for event in read if event.event == "batch_committed"]
    assert len(batches) < 300
    assert batches[0] == 0
    assert batches[-10:] == list(range(990, 1000))
    assert read[-1].event == "query_stopped"
    query = again["queries"][0]
    assert (query["rows_in"], query["rows_out"], query["restarts"]) == (100_000, 90_000, 0)
    assert (query["batch"], query["state"]) == (999, "stopped")


def test_a_short_run_is_read_whole(fed: Feed, tmp_path: Path) -> None:
    fed.fold(described())
    for number in range(20):
        fed.fold(one(number))
    fed.close()

    assert list(brief(tmp_path / "run")) == list(events(tmp_path / "run"))
