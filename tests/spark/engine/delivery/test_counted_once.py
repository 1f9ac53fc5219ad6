"""However a sink executes a batch, and whether it fails, each of the batch's dead letters is stored once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.api.dead_letters import read_unique

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline
    from spark.conftest import Project

pytestmark = pytest.mark.usefixtures("interpreted")

A = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}
B = {"id": "b", "amount": 4, "at": "2026-01-01T12:02:00Z"}
LARGE = {"id": "c", "amount": 900, "at": "2026-01-01T12:03:00Z"}

FUNCTIONS = """
def twice(frame, batch):
    frame.count()
    frame.collect()


def in_part(frame, batch):
    frame.take(1)


def joined(frame, batch):
    frame.alias("one").join(frame.alias("other"), "id").collect()


def with_own_cache(frame, batch):
    frame.persist()
    frame.count()
    frame.collect()
    frame.unpersist()
"""


def letters_and_count(project: Project, pipeline: Pipeline) -> tuple[list[bytes | None], int]:
    """The values of the stored dead letters, and how many malformed records the last batch with rows has counted."""
    counts = [event.data["malformed"] for event in project.list_events("batch_committed")]
    return [letter.value for letter in read_unique(pipeline.letters)], max(counts)


@pytest.mark.parametrize("others", [0, 1], ids=["alone", "before a table"])
@pytest.mark.parametrize("function", ["twice", "in_part", "joined", "with_own_cache"])
def test_a_function_may_execute_its_batch_often_or_in_part(
    function: str, others: int, project: Project
) -> None:
    (project.folder / "functions.py").write_text(FUNCTIONS)
    sinks: list[dict[str, Any]] = [
        {"foreach_batch": f"functions:{function}"},
        {"delta": str(project.folder / "table")},
    ]
    pipeline = project.pipeline(queries={"copy": {"from": "orders", "to": sinks[: 1 + others]}})
    project.add_lines(A, B, "{broken")

    assert project.run(pipeline)

    assert letters_and_count(project, pipeline) == ([b"{broken"], 1)


def test_a_function_whose_batches_may_be_set_aside_may_execute_a_part_of_its_batch(project: Project) -> None:
    (project.folder / "functions.py").write_text(FUNCTIONS)
    sink = {"foreach_batch": "functions:in_part", "on_error": "dead_letter"}
    orders = {
        "json": {"path": str(project.folder / "in")},
        "schema": {"id": "string"},
        "on_malformed": "dead_letter",
    }
    pipeline = project.pipeline(
        sources={"orders": orders}, views={}, queries={"copy": {"from": "orders", "to": [sink]}}
    )
    # Two files are two partitions, of which the function reads one.
    project.add_lines(A, "{broken")
    project.add_lines(B, "{torn")

    assert project.run(pipeline)

    letters, count = letters_and_count(project, pipeline)
    assert (sorted(letters, key=str), count) == ([b"{broken", b"{torn"], 2)


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
