"""A recorded minute of a shop, and feeds to look at it with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millstream.dashboard.export.prometheus import EventCounters
from millstream.dashboard.http.event_stream import EventStream
from millstream.dashboard.run_log import read_events
from millstream.dashboard.state import timestamps
from millstream.dashboard.state.run_state import RunState, new_run_state
from millstream.engine.events.event_bus import Event
from millstream.spark.resources import OpenFiles

RECORDED = Path(__file__).with_name("recorded.jsonl")
START = timestamps.parse("2026-03-01T12:00:00.000Z")


def at(seconds: float) -> str:
    """A time so many seconds after the start of the recorded run."""
    return timestamps.format_timestamp(START + seconds)


def batch(number: int, seconds: float, **more: Any) -> Event:
    """A batch of 100 rows in a second, unless said otherwise."""
    data = {
        "batch": number,
        "rows_in": 100,
        "rows_out": 90,
        "input_rate": 20.0,
        "processed_rate": 100.0,
        "duration_ms": {"addBatch": 900, "triggerExecution": 1000},
        "watermark": None,
        "newest": None,
        "malformed": 0,
        "expectations": {},
        "state_rows": 0,
        "state_bytes": 0,
        "late_rows": 0,
        "sources": [],
    }
    return Event("batch_committed", "funnel", {**data, **more}, at(seconds))


def started(seconds: float = 1.0, **more: Any) -> Event:
    """The start of query `funnel` with a trigger of five seconds, unless said otherwise."""
    data = {
        "id": "i",
        "run_id": "r",
        "trigger": "processing_time 5 seconds",
        "batch": None,
        "sources": ["clicks"],
    }
    return Event("query_started", "funnel", {**data, **more}, at(seconds))


def folded(*happened: Event) -> RunState:
    """The state after some events of a run with query `funnel`."""
    state = new_run_state("r1", at(0), live=True)
    queries = [{"name": "funnel", "trigger": "5 seconds", "trigger_seconds": 5.0, "sources": ["clicks"]}]
    graph = {"nodes": [], "edges": []}
    described = {"pipeline": "shop", "millstream": "1", "graph": graph, "queries": queries, "alerts": []}
    for number, event in enumerate([Event("described", "", described, at(0)), *happened], 1):
        state.take(event, number)
    return state


@pytest.fixture
def recorded() -> RunState:
    """The state at the end of the recorded minute."""
    state = new_run_state("20260301-120000-4711", at(0), live=True)
    for number, event in read_events(RECORDED):
        state.take(event, number)
    return state


@pytest.fixture
def feed() -> EventStream:
    """A feed of the recorded minute whose clock stands at its end."""
    event_stream = EventStream(
        new_run_state("20260301-120000-4711", at(0), live=True),
        counts=EventCounters(),
        clock=lambda: START + 60,
    )
    event_stream.folded.read_open_files = lambda: (OpenFiles("jvm", 600, 4096), OpenFiles("python", 40, 1024))
    for _, event in read_events(RECORDED):
        event_stream.fold(event)
    return event_stream
