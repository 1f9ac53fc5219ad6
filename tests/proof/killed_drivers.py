"""Drivers of a proof of which only those that are killed are processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from millstream.cli.prove.driver import ProveProject
from millstream.cli.run.run import start
from millstream.dashboard.live_run import PageOptions
from millstream.engine.run import RunOptions
from millstream.proof.driver_pool import Drivers

KILLS = 1


class KilledDrivers(Drivers):
    """Drivers of which `KILLS` are killed. The runs to the end are in the session of the tests."""

    def start(self, armed: str | None = None, *, to_the_end: bool = False, last: bool = False) -> Any:
        if not to_the_end:
            return super().start(armed, last=last or self.started + 1 == KILLS)
        self.started += 1
        return RunToTheEnd(Path(self.command[self.command.index("-f") + 1]), self.folder)


class RunToTheEnd:
    """A run of the copy in `folder` until it is caught up, with the methods of a driver that a proof then calls."""

    def __init__(self, spec: Path, folder: Path) -> None:
        self.log = folder / "spark.log"
        self._project, self._folder = ProveProject(spec, (), None), folder

    def wait(self, _seconds: float) -> int:
        """Run, and return the exit code."""
        loaded = replace(self._project.open(), pipeline=self._project.copied(self._folder)[1].pipeline)
        page = PageOptions(is_served=False, is_recorded=False)
        return start(loaded, RunOptions(until_caught_up=True), as_json=True, page_options=page)

    def last_words(self) -> str:
        """Return nothing: its events are in the output of the proof."""
        return ""
