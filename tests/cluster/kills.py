"""Kills of drivers and workers, one after the other, in the course of one project."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from millstream.connectors.failpoints import VARIABLE
from millstream.devstack.stack import start
from millstream.devstack.supervisor.state import Home

if TYPE_CHECKING:
    from acceptance.project import Project
    from millstream.devstack.supervisor.state import Endpoints

# In this order the batch of the files advances by one at most, so that each point is met.
POINTS = (
    "batch.begun",
    "delta.before",
    "files.staged",
    "letters.kept",
    "files.committed",
    "delta.committed",
    "files.published",
    "batch.delivered",
)
# Two batches of each query for each kill, and a few for the start that ends well.
KILLED_FILES = 24


def kill_at_each_point(project: Project, time: int) -> None:
    """Start a run for each point, and let Python die by SIGKILL the `time`-th time that it comes there.

    Its JVM ends by itself some moments later, as after any death of Python.
    """
    for point in POINTS:
        run = project.start("run", "--json", "--no-page", **{VARIABLE: f"{point}=kill@{time}"})
        assert run.ends() == -signal.SIGKILL, f"{point}\n{run.words()}"


def run_with_kills_of_a_worker_and_the_driver(shop: Project, cluster: Endpoints, **variables: str) -> None:
    """Kill a worker while a run has batches, and then the driver, and let another run catch up."""
    first = shop.start("run", "--master", cluster.spark, "--json", "--no-page", **variables)
    for query in ("totals", "priced"):
        first.await_event("batch_committed", query=query)

    state = Home(cluster.folder).state()
    assert state is not None
    worker = state.servers["spark-worker-1"].process
    assert worker is not None
    worker.send(signal.SIGKILL)
    first.await_event("batch_committed", len(first.list_events("batch_committed")) + 2)
    first.kill()
    start(cluster.folder, "spark-worker-1")
    second = shop.start(
        "run", "--master", cluster.spark, "--until-caught-up", "--json", "--no-page", **variables
    )

    assert second.ends() == 0, second.words()
