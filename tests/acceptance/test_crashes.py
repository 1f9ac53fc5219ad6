"""kill -9 at any moment, servers that go away, a second run: the tables are right in the end."""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING

import pytest

from acceptance.oracle import differences
from acceptance.project import last
from millstream.devstack import stack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from acceptance.project import Project
    from millstream.devstack.supervisor.state import Endpoints

SEED = int(os.environ.get("MILLSTREAM_SEED", "3"))
KILLS = int(os.environ.get("MILLSTREAM_KILLS", "3"))
# Events a second; the event time is the clock's, so that no restart makes a record late.
RATE = "800"
BRISK = ("--set", "defaults.trigger=1 seconds")


# `prove` kills each process under sinks of the same kinds, and recovery/test_kills_at_failpoints.py each of them.
@pytest.mark.whole
@pytest.mark.timeout(300 + 120 * KILLS)
def test_killed_at_random_moments_the_tables_are_right(project: Project, spark: SparkSession) -> None:
    chance = random.Random(SEED)
    traffic = project.traffic("--rate", RATE)
    for _ in range(KILLS):
        running = project.start("run", "--json", *BRISK)
        running.await_event("batch_committed")
        running.stays(chance.uniform(0, 4))
        running.kill()
    traffic.signal(signal.SIGINT)
    assert traffic.ends() == 0, traffic.words()
    project.catch_up_in(spark)
    assert differences(project.expected_tables(), project.stored_tables()) == "", f"seed {SEED}"


# Outages of each server, one at a time, are in recovery/test_long_outages.py.
@pytest.mark.whole
@pytest.mark.timeout(600)
def test_a_run_outlives_its_servers_absence(project: Project, servers: Endpoints) -> None:
    traffic = project.traffic("--rate", RATE)
    running = project.start("run", "--json", "--for", "10m", *BRISK)
    for query in ("funnel", "purchases"):
        running.await_event("batch_committed", query=query)
    stack.stop(servers.folder, "kafka")
    running.stays(20)
    stack.start(servers.folder, "kafka")
    committed = len(running.list_events("batch_committed", query="funnel"))
    running.await_event("batch_committed", committed + 1, query="funnel")
    stack.stop(servers.folder, "postgres")
    stack.start(servers.folder, "postgres")
    running.stays(3)
    stack.stop(servers.folder, "postgres")
    running.stays(10)
    running.await_event("retry", query="purchases")
    stack.start(servers.folder, "postgres")
    committed = len(running.list_events("batch_committed", query="purchases"))
    running.await_event("batch_committed", committed + 1, query="purchases")
    traffic.signal(signal.SIGINT)
    assert traffic.ends() == 0, traffic.words()
    running.signal(signal.SIGTERM)
    assert running.ends() == 0, running.words()
    project.catch_up()
    assert differences(project.expected_tables(), project.stored_tables()) == ""


# `prove` starts a second driver on the same checkpoints too.
@pytest.mark.whole
@pytest.mark.timeout(480)
def test_a_second_run_on_a_checkpoint_is_refused_and_names_the_first(project: Project) -> None:
    project.send(3000)
    first = project.start("run", "--json", *BRISK)
    for query in ("funnel", "purchases"):
        first.await_event("batch_committed", query=query)
    second = project.call("run", "--until-caught-up", "--json")
    assert second.code == 3
    assert f"process {first.process.pid}" in second.err
    assert second.err.count("fix:") == 1
    assert "Traceback" not in second.err
    assert "query_started" not in second.out
    first.stays(1)
    first.signal(signal.SIGTERM)
    assert first.ends() == 0, first.words()
    project.catch_up()
    assert differences(project.expected_tables(), project.stored_tables()) == ""


# A terminal's signal goes to the whole group; `test_a_second_run…` sends the other one.
@pytest.mark.timeout(480)
@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGTERM, marks=pytest.mark.whole), signal.SIGINT],
    ids=["SIGTERM", "Ctrl-C"],
)
def test_a_signal_lets_the_batch_in_progress_finish(project: Project, number: int) -> None:
    project.send(6000)
    small = [
        word
        for source in ("clicks", "cart_events", "purchases")
        for word in ("--set", f"sources.{source}.kafka.max_offsets_per_trigger=200")
    ]
    running = project.start("run", "--json", "--set", "defaults.trigger=1 seconds", *small)
    running.await_event("batch_committed", 2, query="funnel")
    # It begins after the other's first batch, and its own first one takes long.
    running.await_event("batch_committed", 1, query="purchases")
    if number == signal.SIGINT:
        # A terminal sends it to the whole group.
        os.killpg(running.process.pid, number)
    else:
        running.signal(number)
    assert running.ends(120) == 0, running.words()
    checkpoints = project.checkpoints()
    assert len(checkpoints) == 2
    for checkpoint in checkpoints:
        assert last(checkpoint / "offsets") == last(checkpoint / "commits") >= 0
    assert running.list_events("stopping")
    assert running.events[-1]["event"] == "run_stopped"
    assert differences(project.expected_tables(), project.stored_tables()) != "", (
        "all was read before the signal came"
    )
