"""Produced events against the tables: duplicates, disorder and malformed records, read once and again.

The first run has a process, as a person's has, which Ctrl-C ends; the later ones take the session of the tests.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

import sweep
from acceptance.interrupted_run import InterruptedRun, assert_batches_are_finished, interrupt
from acceptance.oracle import differences
from acceptance.project import last

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from acceptance.project import Events, Project, Running

EVENTS = sweep.size(10_000, 60_000, "MILLSTREAM_EVENTS")
LATER = "2026-01-02T00:00:00Z"
# What a run that hangs would take, not what one may take: a busy machine is several times slower than an idle one.
PATIENCE = 600
pytestmark = pytest.mark.timeout(2 * PATIENCE)


@pytest.fixture(scope="module")
def shop(make_project: Callable[[], Project]) -> Project:
    """A project whose topics hold many events, none of them read."""
    project = make_project()
    project.send(EVENTS)
    return project


def press_ctrl_c(running: Running) -> None:
    """A terminal sends the signal to the whole group."""
    os.killpg(running.process.pid, signal.SIGINT)


@pytest.fixture(scope="module")
def interrupted(shop: Project) -> InterruptedRun:
    return interrupt(shop, press_ctrl_c)


@pytest.fixture(scope="module")
def caught_up(shop: Project, interrupted: InterruptedRun, request: pytest.FixtureRequest) -> Events:
    """The run that reads what the interrupted one has left: a process with generated code if there is much of it."""
    assert interrupted.code == 0, interrupted.running.words()
    if sweep.WHOLE or "MILLSTREAM_EVENTS" in os.environ:
        return shop.catch_up(PATIENCE)
    return shop.catch_up_in(request.getfixturevalue("spark"))


def test_ctrl_c_lets_the_batch_in_progress_finish(interrupted: InterruptedRun) -> None:
    assert_batches_are_finished(interrupted)


@pytest.mark.usefixtures("caught_up")
def test_every_table_holds_what_was_produced_once(shop: Project) -> None:
    tables = shop.expected_tables()
    assert len(tables.malformed) > EVENTS / 200, "the traffic is not what this test is about"
    assert differences(tables, shop.stored_tables()) == ""


def test_each_line_of_json_is_an_event_with_its_figures(
    interrupted: InterruptedRun, caught_up: Events
) -> None:
    runs = (interrupted.running, caught_up)
    for run in runs:
        events = run.events
        assert events[0]["event"] == "run_started"
        assert events[-1] == {"event": "run_stopped", "at": events[-1]["at"], "exit_code": 0}
        assert {event["query"] for event in run.list_events("query_started")} == {"funnel", "purchases"}
        assert {event["query"] for event in run.list_events("query_stopped")} == {"funnel", "purchases"}
    committed = [event for run in runs for event in run.list_events("batch_committed", query="purchases")]
    assert sum(item["rows_in"] for item in committed) > EVENTS / 50
    assert {
        "at", "batch", "rows_in", "rows_out", "input_rate", "processed_rate", "duration_ms", "watermark",
        "newest", "malformed", "state_rows", "state_bytes", "late_rows", "sources",
    } <= committed[0].keys()  # fmt: skip
    assert sum(item["late_rows"] for item in committed) == 0
    letters = [event for run in runs for event in run.list_events("dead_letter", query="purchases")]
    assert sum(event["records"] for event in letters) > 0


@pytest.mark.usefixtures("caught_up")
def test_a_second_run_changes_nothing(shop: Project, spark: SparkSession) -> None:
    before = shop.files()
    second = shop.catch_up_in(spark)
    assert not [event for event in second.list_events("batch_committed") if event["rows_in"]]
    assert shop.files() == before


@pytest.mark.whole
@pytest.mark.usefixtures("caught_up")
def test_a_run_for_a_time_ends_by_itself(shop: Project) -> None:
    running = shop.start("run", "--for", "3s", "--json")
    assert running.ends() == 0, running.words()
    assert {event["reason"] for event in running.list_events("query_stopped")} == {"asked to end"}


@pytest.mark.usefixtures("caught_up")
def test_what_comes_afterwards_is_added(shop: Project, spark: SparkSession) -> None:
    shop.send(EVENTS // 10, seed=2, start=LATER)
    shop.catch_up_in(spark)
    assert differences(shop.expected_tables(), shop.stored_tables()) == ""


@pytest.mark.usefixtures("caught_up")
def test_a_batch_that_comes_again_changes_no_sink(shop: Project, spark: SparkSession) -> None:
    tables, files = shop.stored_tables(), shop.files()
    replayed = []
    for checkpoint in shop.checkpoints():
        number = last(checkpoint / "commits")
        (checkpoint / "commits" / str(number)).unlink()
        (checkpoint / "commits" / f".{number}.crc").unlink(missing_ok=True)
        replayed.append(number)
    again = shop.catch_up_in(spark)
    assert sorted(
        {event["batch"] for event in again.list_events("batch_committed")} & set(replayed)
    ) == sorted(set(replayed))
    assert shop.files() == files
    assert differences(tables, shop.stored_tables()) == ""
