"""Kills of a driver at each failpoint of a batch, one after the other, of one project."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from millstream.connectors.failpoints import VARIABLE

if TYPE_CHECKING:
    from acceptance.project import Project

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
