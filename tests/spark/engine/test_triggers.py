"""Each trigger with batches: what it reads, in how many, and whether it ends by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, run_pipeline

if TYPE_CHECKING:
    from conftest import Project
    from millstream.engine.supervisor import Supervisor

ROWS = [("a", 1), ("b", 2)]


def runs_with_trigger(project: Project, trigger: str) -> bool:
    """Two files, a row each, run under a trigger; ended from outside once both rows were written."""
    for name, amount in ROWS:
        project.add_lines({"id": name, "amount": amount, "at": "2026-01-01T12:00:00Z"})
    pipeline = project.pipeline(defaults={"trigger": trigger})
    events, output = EventBus(), 0
    supervisors: list[Supervisor] = []

    def listen(event: Event) -> None:
        nonlocal output
        output += (event.data["rows_out"] or 0) if event.event == "batch_committed" else 0
        if output == len(ROWS) and not pipeline.trigger("copy").has_end:
            supervisors[0].end()

    events.listen(listen)
    try:
        options = RunOptions(select=("copy",))
        return run_pipeline(project.spark, pipeline, options, events, {}, on_supervisor=supervisors.append)
    finally:
        events.close()


@pytest.mark.parametrize("trigger", ["default", "1 second", "available_now", "once"])
def test_a_trigger_reads_what_is_there(project: Project, trigger: str) -> None:
    assert runs_with_trigger(project, trigger)

    assert [row[:2] for row in project.rows("table")] == ROWS


@pytest.mark.parametrize(("trigger", "batches"), [("once", [0]), ("available_now", [0, 1])])
def test_once_is_one_batch_and_available_now_keeps_the_sources_limit(
    project: Project, trigger: str, batches: list[int]
) -> None:
    runs_with_trigger(project, trigger)

    assert project.numbers("copy", "commits") == batches
