"""However a sink executes a batch, and whether it fails, each of the batch's dead letters is stored once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.connectors.api.dead_letters import read_unique

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline
    from spark.conftest import Project

pytestmark = pytest.mark.usefixtures("interpreted")

A = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}
LARGE = {"id": "c", "amount": 900, "at": "2026-01-01T12:03:00Z"}


def letters_and_count(project: Project, pipeline: Pipeline) -> tuple[list[bytes | None], int]:
    """The values of the stored dead letters, and how many malformed records the last batch with rows has counted."""
    counts = [event.data["malformed"] for event in project.list_events("batch_committed")]
    return [letter.value for letter in read_unique(pipeline.letters)], max(counts)


def test_a_batch_that_failed_in_the_tasks_of_its_sink_is_set_aside_with_its_dead_letters(
    project: Project,
) -> None:
    table = project.folder / "table"
    sink = {"delta": str(table), "on_error": "dead_letter"}
    pipeline = project.pipeline(queries={"copy": {"from": "orders", "to": [sink]}})
    project.add_lines(A)
    assert project.run(pipeline)
    project.spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT small CHECK (amount < 100)")
    project.add_lines(LARGE, "{broken")

    assert project.run(pipeline)

    assert [event.data["batch"] for event in project.list_events("set_aside")] == [1]
    assert letters_and_count(project, pipeline) == ([b"{broken"], 1)
