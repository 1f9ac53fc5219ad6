"""A run asks at its start what a changed query does with its checkpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from millstream.diagnostics.failure import CheckpointError
from millstream.engine.recovery.restart_check import plan_without_spark
from millstream.engine.run import RunOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.pipeline.model import Pipeline
    from spark.conftest import Project

pytestmark = pytest.mark.usefixtures("small_batches")

SUMS = "SELECT window.start AS since, sum(amount) AS amount FROM orders GROUP BY window(at, '10 minutes')"


def order(number: int, minute: int) -> dict[str, Any]:
    return {"id": f"o{number}", "amount": number, "at": f"2026-01-01 12:{minute:02}:00"}


def changed(project: Project, before: str, now: str) -> Pipeline:
    """The query `sums` alone, with a change of its SQL."""
    # One of the tests waits until a query that cannot start is given up.
    retry = {"first": "10 ms", "give_up_after": "1 second"}
    made = project.pipeline(views={"sums": {"sql": SUMS.replace(before, now)}}, defaults={"retry": retry})
    return made.model_copy(update={"queries": {"sums": made.queries["sums"]}})


def caught_up(*accept: str) -> RunOptions:
    return RunOptions(until_caught_up=True, accept=accept)


def record_file(project: Project) -> Path:
    return project.folder / ".millstream" / "checkpoints" / "sums" / "_millstream" / "record.json"


@pytest.fixture
def project_with_batch(prepared: Callable[..., Project]) -> Project:
    """The project after one batch."""

    def run_once(project: Project) -> None:
        project.add_lines(order(1, 1), order(2, 12))
        assert project.run(changed(project, "", ""), caught_up())

    return prepared("restart_check", run_once)


def test_an_unchanged_query_starts_without_a_word(project_with_batch: Project) -> None:
    project_with_batch.add_lines(order(3, 13))

    assert project_with_batch.run(changed(project_with_batch, "", ""), caught_up())

    assert project_with_batch.list_events("plan") == []


def test_a_query_that_spark_would_continue_wrongly_is_refused_until_it_is_accepted(
    project_with_batch: Project,
) -> None:
    project_with_batch.add_lines(order(3, 13))
    rows = project_with_batch.rows("sums")
    longer = changed(project_with_batch, "10 minutes", "15 minutes")

    with pytest.raises(CheckpointError, match="15 minutes") as refused:
        project_with_batch.run(longer, caught_up())

    assert project_with_batch.rows("sums") == rows
    code = refused.value.fix.rpartition("--accept ")[2].strip("'")
    with pytest.raises(CheckpointError, match="15 minutes"):
        project_with_batch.run(longer, caught_up("sums-000000"))
    assert project_with_batch.run(longer, caught_up(code))
    assert project_with_batch.run(longer, caught_up(code))


def test_a_start_that_spark_refused_does_not_hide_the_change_from_the_next(
    project_with_batch: Project,
) -> None:
    project_with_batch.add_lines(order(3, 13))
    more = changed(project_with_batch, "sum(amount) AS amount", "sum(amount) AS amount, count(*) AS n")
    with pytest.raises(CheckpointError) as refused:
        project_with_batch.run(more, caught_up())
    code = refused.value.fix.rpartition("--accept ")[2].strip("'")
    project_with_batch.run(more, caught_up(code))

    with pytest.raises(CheckpointError, match="aggregates"):
        project_with_batch.run(more, caught_up())
    assert project_with_batch.run(changed(project_with_batch, "", ""), caught_up())


def test_the_record_of_an_older_version_continues_with_a_note(project_with_batch: Project) -> None:
    recorded = json.loads(record_file(project_with_batch).read_text())
    for field in ("plan", "views", "inputs", "trigger", "params", "started_after"):
        del recorded[field]
    record_file(project_with_batch).write_text(json.dumps(recorded))
    project_with_batch.add_lines(order(3, 13))

    assert project_with_batch.run(changed(project_with_batch, "sum(amount)", "sum(amount * 2)"), caught_up())

    (event,) = project_with_batch.list_events("plan")
    assert event.data["verdict"] == "cannot_tell"


def test_a_change_that_continues_is_said_in_one_event(project_with_batch: Project) -> None:
    project_with_batch.add_lines(order(3, 13))

    assert project_with_batch.run(changed(project_with_batch, "GROUP BY", "WHERE true GROUP BY"), caught_up())
    assert project_with_batch.list_events("plan") == []
    project_with_batch.add_lines(order(4, 14))
    assert project_with_batch.run(
        changed(project_with_batch, "AS amount FROM", "+ 1 AS amount FROM"), caught_up()
    )

    (event,) = project_with_batch.list_events("plan")
    assert event.data["verdict"] == "continues_with_note"
    assert [change["kind"] for change in event.data["changes"]] == ["columns_changed"]


def test_without_spark_only_changed_sql_is_unknown(project_with_batch: Project) -> None:
    same = plan_without_spark(changed(project_with_batch, "GROUP BY", "-- by time\n  GROUP  BY"), "sums")
    other = plan_without_spark(changed(project_with_batch, "10 minutes", "15 minutes"), "sums")

    assert same.judgements == ()
    assert other.verdict == "cannot_tell"
