"""The drivers of a proof, one after another; while one runs, the next one starts up in the background."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.proof.driver import Driver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


# More than run at a time: two or three drivers, the one for backfills, and a JVM without its Python.
LOGS = 8


@dataclass
class Drivers:
    """Starts drivers with `command` ahead of time, because the start of a JVM and its session dominates a kill."""

    command: Sequence[str]
    env: Mapping[str, str]
    folder: Path
    started: int = 0
    """Number of drivers that were ordered to run."""
    _created: int = 0
    _spare: Driver | None = None
    _running: list[Driver] = field(default_factory=list)
    _detached: list[Driver] = field(default_factory=list)
    """Drivers that survive when others are killed: backfills, and JVMs without their Python."""

    def start(self, armed: str | None = None, *, to_the_end: bool = False, last: bool = False) -> Driver:
        """Return a driver that runs the pipeline. Unless it is the `last`, the next one begins to start up."""
        driver = self._spare or self._create()
        self._spare = None
        self._running.append(driver)
        driver.go(armed, to_the_end=to_the_end)
        self.started += 1
        if not last:
            self._spare = self._create()
        return driver

    def backfill(self) -> Driver:
        """Return a driver that runs backfills in parallel to the others; `end` does not kill it."""
        driver = self._create()
        driver.backfill()
        self._detached.append(driver)
        return driver

    def detach(self, driver: Driver) -> None:
        """Let the JVM of a driver whose Python was killed end by itself."""
        self._running.remove(driver)
        self._detached.append(driver)

    def end(self) -> None:
        """Kill the running drivers, but not the one that is starting up."""
        while self._running:
            self._running.pop().kill()

    def close(self) -> None:
        """Kill all drivers."""
        self.end()
        while self._detached:
            self._detached.pop().kill()
        if self._spare is not None:
            self._spare.kill()
            self._spare = None

    def _create(self) -> Driver:
        self._created += 1
        return Driver(self.command, self.env, self.folder / f"driver-{self._created % LOGS}.log")
