"""Where kills and faults happen: drivers to start and watch, input to feed, checkpoints to look into."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.lock import CheckpointLock
from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.pipeline.model import Pipeline
    from millstream.proof.driver import Driver
    from millstream.proof.drivers import Drivers
    from millstream.proof.feed import Feed

# Seconds: how often a driver is looked at, how long a start, a batch or an end may take on a machine that is busy.
LOOK, PATIENCE = 0.1, 300.0
# A portion is fed when a batch was committed, or after so many seconds.
PACE = 2.0


@dataclass
class Tally:
    """What happened until the end."""

    kills: Counter[str] = field(default_factory=Counter)
    replayed: int = 0
    """Batches that were begun and not committed when a driver died: the next start had to deliver them again."""
    removed: int = 0
    """Queries whose last commit was deleted, so that a batch that every sink has came again."""
    faults: Counter[str] = field(default_factory=Counter)
    """Faults that happened, other than kills."""
    outlived: Counter[str] = field(default_factory=Counter)
    """Points that were not reached before the driver had nothing left to do; it was killed then."""
    starts: int = 0
    seconds: list[float] = field(default_factory=list)
    """What each kill cost, from the start before it to the death, in the order of the kills."""


@dataclass
class Scene:
    """One proof on its way."""

    pipeline: Pipeline
    feed: Feed
    drivers: Drivers
    tally: Tally = field(default_factory=Tally)

    def until(self, driver: Driver, what: str, reached: Callable[[], bool], *, feeding: bool = True) -> None:
        """Wait, and feed meanwhile, until something holds.

        Raises `MillstreamError` when the driver ends before, or nothing comes of it within `PATIENCE`.
        """
        began = fed = time.monotonic()
        while not reached():
            code, now = driver.wait(LOOK), time.monotonic()
            if reached():
                return
            if code is not None or now - began > PATIENCE:
                said = "came to a standstill" if code is None else f"ended with {code}"
                raise MillstreamError(
                    f"the driver {said} before {what}: {driver.last_words()}", f"see {driver.log}"
                )
            if feeding and driver.started.is_set() and now - fed > PACE:
                self.feed.extra()
                fed = now

    def running(self, what: str, armed: str | None = None) -> Driver:
        """A driver all of whose queries have started, and only then is armed.

        A query that starts after a rival's takes its sinks over: of two drivers it must be sure which one is older.
        """
        driver = self.drivers.start()
        self.until(driver, what, lambda: len(driver.queries) == len(self.pipeline.queries))
        if armed:
            driver.arm(armed)
        return driver

    def batches(self, driver: Driver, more: int, what: str) -> None:
        """Feed, and wait until the driver has committed so many batches more."""
        wanted = driver.batches + more
        self.feed.extra()
        self.until(driver, what, lambda: driver.batches >= wanted)

    def ended(self, drivers: list[Driver], what: str) -> Driver:
        """Feed, and wait until one of them has ended by itself. Raises `MillstreamError` when none does."""
        began = fed = time.monotonic()
        while True:
            for driver in drivers:
                if driver.wait(LOOK) is not None:
                    return driver
            now = time.monotonic()
            if now - began > PATIENCE:
                raise MillstreamError(f"{what}: both drivers go on", f"see {drivers[0].log}")
            if now - fed > PACE:
                self.feed.extra()
                fed = now

    def unlock(self) -> None:
        """Remove the lock file of each checkpoint, as somebody does who takes its owner for dead."""
        for query in self.pipeline.queries:
            CheckpointLock(self.folder(query), "").file.unlink(missing_ok=True)

    def died(self) -> None:
        """A driver was killed: kill what runs beside it, and count what the next start must deliver again."""
        self.drivers.end()
        self.tally.replayed += sum(self._unfinished(query) for query in self.pipeline.queries)

    def forget(self, query: str) -> bool:
        """Delete the last file of a checkpoint's commits; False when there is none."""
        checkpoint = Checkpoint(self.folder(query))
        last = checkpoint.committed()
        if last is None:
            return False
        for name in (f"{last}", f".{last}.crc"):
            with contextlib.suppress(FileNotFoundError):
                (checkpoint.folder / "commits" / name).unlink()
        return True

    def folder(self, query: str) -> Path:
        """The checkpoint of a query."""
        folder = self.pipeline.checkpoint(query).local
        assert folder is not None, "moved below a folder of this machine"
        return folder

    def _unfinished(self, query: str) -> bool:
        checkpoint = Checkpoint(self.folder(query))
        return checkpoint.planned() != checkpoint.committed()
