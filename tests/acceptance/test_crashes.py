"""kill -9 at any moment, servers that go away, a second run: the tables are right in the end."""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING

import pytest

from acceptance.interrupted_run import assert_batches_are_finished, interrupt
from acceptance.oracle import differences
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


# Ctrl-C comes to a run in test_exactly_once.py, and `test_a_second_run…` sends SIGTERM too.
@pytest.mark.whole
@pytest.mark.timeout(480)
def test_sigterm_lets_the_batch_in_progress_finish(project: Project) -> None:
    project.send(6000)

    run = interrupt(project, lambda running: running.signal(signal.SIGTERM))

    assert_batches_are_finished(run)
