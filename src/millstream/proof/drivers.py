"""The drivers of a proof, one after another: while one runs, the next one gets ready beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.proof.driver import Driver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass
class Drivers:
    """Starts drivers with `command`. Most of what a kill costs is the start of a JVM and its session, done ahead."""

    command: Sequence[str]
    env: Mapping[str, str]
    folder: Path
    started: int = 0
    """Drivers that were told to run."""
    _made: int = 0
    _spare: Driver | None = None
    _running: list[Driver] = field(default_factory=list)

    def start(self, armed: str | None = None, *, to_the_end: bool = False, last: bool = False) -> Driver:
        """A driver that runs the pipeline. Unless it is the `last`, the next one begins to get ready."""
        driver = self._spare or self._make()
        self._spare = None
        self._running.append(driver)
        driver.go(armed, to_the_end=to_the_end)
        self.started += 1
        if not last:
            self._spare = self._make()
        return driver

    def end(self) -> None:
        """Kill those that run; the one that is getting ready stays."""
        while self._running:
            self._running.pop().kill()

    def close(self) -> None:
        """Kill all."""
        self.end()
        if self._spare is not None:
            self._spare.kill()
            self._spare = None

    def _make(self) -> Driver:
        # Two are alive at a time, three where rivals meet: what they say is kept apart.
        self._made += 1
        return Driver(self.command, self.env, self.folder / f"driver-{self._made % 4}.log")
