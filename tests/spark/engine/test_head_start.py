"""The first query of a new pipeline begins alone where there are as many queries as cores: two, in these tests."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from millstream.engine import run as running
from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, run_pipeline

if TYPE_CHECKING:
    from millstream.engine.supervisor import Supervisor
    from spark.conftest import Project

pytestmark = pytest.mark.usefixtures("small_batches")

A = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}


@pytest.fixture(autouse=True)
def _for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever waits for the head start to pass is too late for its test."""
    monkeypatch.setattr(running, "HEAD_START", 3600.0)


def start_queries(project: Project, options: RunOptions, *queries: str) -> Supervisor:
    """Run it to its end. Where nothing else ends it: until all queries have started, or for 150 s."""
    actual: list[Supervisor] = []
    limit = threading.Timer(150, lambda: actual[0].end())
    started: list[str | None] = []

    def heard(event: Event) -> None:
        project.events.append(event)
        if event.event == "query_started":
            started.append(event.query)
        if options == RunOptions() and set(started) == {"sums", "copy"}:
            actual[0].end()

    def begins(supervisor: Supervisor) -> None:
        actual.append(supervisor)
        if options == RunOptions():
            limit.start()

    pipeline = project.pipeline()
    chosen = {name: pipeline.queries[name] for name in queries or pipeline.queries}
    events = EventBus()
    events.listen(heard)
    try:
        alone = pipeline.model_copy(update={"queries": chosen})
        assert run_pipeline(project.spark, alone, options, events, {}, on_supervisor=begins)
    finally:
        limit.cancel()
        events.close()
    return actual[0]


def test_a_first_query_that_has_nothing_to_read_keeps_nobody_waiting(project: Project) -> None:
    start_queries(project, RunOptions())

    assert {event.query for event in project.list_events("query_started")} == {"sums", "copy"}


def test_no_query_of_a_run_for_a_while_is_kept_waiting(project: Project) -> None:
    project.add_lines(A)

    assert start_queries(project, RunOptions(seconds=0.1)).alone_until == 0.0


def test_the_second_query_starts_after_the_first_batch_of_the_first_and_at_once_from_a_checkpoint(
    project: Project,
) -> None:
    project.add_lines(A)
    began = time.monotonic()

    assert start_queries(project, RunOptions(until_caught_up=True)).alone_until > began
    messages = [(event.event, event.query) for event in project.events]
    assert messages.index(("batch_written", "sums")) < messages.index(("query_started", "copy"))
    assert len(project.rows("table")) == 1

    assert start_queries(project, RunOptions(until_caught_up=True)).alone_until == 0.0


def test_one_query_is_not_ahead_of_any(project: Project) -> None:
    project.add_lines(A)

    assert start_queries(project, RunOptions(until_caught_up=True), "sums").alone_until == 0.0
