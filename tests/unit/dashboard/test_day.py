"""A long run has a bound in memory and on disk, and opens again with the right sums, not every batch read."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from millstream.dashboard import run_log
from millstream.dashboard.export.prometheus import EventCounters
from millstream.dashboard.http.event_stream import EventStream
from millstream.dashboard.replay_server import load_past_run
from millstream.dashboard.run_log import RunLog, read_events, read_thinned_events
from millstream.dashboard.state.run_state import new_run_state
from millstream.dashboard.state.time_series import MOST
from millstream.engine.events.event_bus import Event
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


def batch_event(number: int) -> Event:
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
def feed_of_a_day(tmp_path: Path) -> Iterator[EventStream]:
    """A feed with a log of small segments."""
    log = RunLog(tmp_path / "run", segment=20_000)
    event_stream = EventStream(
        new_run_state("r1", at(0), live=True), counts=EventCounters(), log=log, clock=lambda: START
    )
    yield event_stream
    event_stream.close()


@pytest.mark.slow
def test_memory_does_not_grow_once_the_history_is_full() -> None:
    feed = EventStream(new_run_state("r1", at(0), live=True), counts=EventCounters(), clock=lambda: START)
    feed.fold(described())
    tracemalloc.start()
    try:
        for number in range(2 * MOST):
            feed.fold(batch_event(number))
        full, _ = tracemalloc.get_traced_memory()
        for number in range(2 * MOST, 5 * MOST // 2):
            feed.fold(batch_event(number))
        after, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # The stream's replay is shared by all queries, the rest is there for each.
    ring = sum(len(messages.data) + 200 for messages in feed._ring)
    assert after < full * 1.1
    assert ring + QUERIES * (most - ring) < MEMORY


def test_sums_survive_segments_that_are_thinned_or_not_read(
    feed_of_a_day: EventStream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "WHOLE", 2)
    feed_of_a_day.fold(described())
    feed_of_a_day.fold(started())
    for number in range(1000):
        feed_of_a_day.fold(batch_event(number))
    feed_of_a_day.fold(Event("query_stopped", "funnel", {"reason": "asked to end"}, at(1000)))
    feed_of_a_day.close()

    read = [event for _, event in read_thinned_events(tmp_path / "run")]
    document = load_past_run(tmp_path / "run", "r1").document()

    batches = [event.data["batch"] for event in read if event.event == "batch_committed"]
    assert len(batches) < 300
    assert batches[0] == 0
    assert batches[-10:] == list(range(990, 1000))
    assert read[-1].event == "query_stopped"
    query = document["queries"][0]
    assert (query["rows_in"], query["rows_out"], query["restarts"]) == (100_000, 90_000, 0)
    assert (query["batch"], query["state"]) == (999, "stopped")


def test_a_short_run_is_read_whole(feed_of_a_day: EventStream, tmp_path: Path) -> None:
    feed_of_a_day.fold(described())
    for number in range(20):
        feed_of_a_day.fold(batch_event(number))
    feed_of_a_day.close()

    assert list(read_thinned_events(tmp_path / "run")) == list(read_events(tmp_path / "run"))
