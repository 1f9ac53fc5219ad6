"""The environment of a proof: drivers to start and watch, input to feed, checkpoints to inspect."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.lock import lock_file
from millstream.checkpoint.remote.path import require_local
from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.pipeline.model import Pipeline
    from millstream.proof.driver import Driver
    from millstream.proof.driver_pool import Drivers
    from millstream.proof.input_feed import InputFeed

# In seconds: how often a driver is polled, and how long a start, a batch or an end may take on a busy machine.
LOOK, PATIENCE = 0.1, 300.0
# A portion is fed after each committed batch, and at least every PACE seconds.
PACE = 2.0


@dataclass
class ProofCounts:
    """Counts of everything that happened in a proof."""

    kills: Counter[str] = field(default_factory=Counter)
    victims: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Kills by failpoint and by the processes of the driver that were killed."""
    replayed: int = 0
    """Batches that were started but not committed when a driver died; the next start had to deliver them again."""
    removed: int = 0
    """Queries whose last commit was deleted, so that a batch that every sink has was replayed."""
    faults: Counter[str] = field(default_factory=Counter)
    """Faults that happened, other than kills."""
    missed_failpoints: Counter[str] = field(default_factory=Counter)
    """Failpoints that were not reached before the driver was idle; it was killed then."""
    backfills: int = 0
    """Backfills of a sink that ran during the kills."""
    backfilled: Counter[str] = field(default_factory=Counter)
    """Rows that the backfills added, by query and sink."""
    starts: int = 0
    seconds: list[float] = field(default_factory=list)
    """Duration of each kill in seconds, from the driver's start to its death, in the order of the kills."""


@dataclass
class ProofRun:
    """A running proof."""

    pipeline: Pipeline
    feed: InputFeed
    drivers: Drivers
    tally: ProofCounts = field(default_factory=ProofCounts)

    def until(
        self, driver: Driver, event: str, is_reached: Callable[[], bool], *, feeding: bool = True
    ) -> None:
        """Wait until a condition is true, and feed input in the meantime.

        Raises `MillstreamError` if the driver ends earlier, or if the condition is not met within `PATIENCE`.
        """
        started = last_fed = time.monotonic()
        while not is_reached():
            code, now = driver.wait(LOOK), time.monotonic()
            if is_reached():
                return
            if code is not None or now - started > PATIENCE:
                outcome = "made no progress" if code is None else f"ended with {code}"
                raise MillstreamError(
                    f"the driver {outcome} before {event}: {driver.last_words()}", f"see {driver.log}"
                )
            if feeding and driver.started.is_set() and now - last_fed > PACE:
                self.feed.extra()
                last_fed = now

    def running(self, event: str, armed: str | None = None) -> Driver:
        """Start a driver, wait until all of its queries have started, and only then arm it.

        A query that starts later takes over the sinks of an earlier one, so the order of two drivers must be certain.
        """
        driver = self.drivers.start()
        self.until(driver, event, lambda: len(driver.queries) == len(self.pipeline.queries))
        if armed:
            driver.arm(armed)
        return driver

    def batches(self, driver: Driver, more: int, event: str) -> None:
        """Feed, and wait until the driver has committed this many more batches."""
        target = driver.batches + more
        self.feed.extra()
        self.until(driver, event, lambda: driver.batches >= target)

    def batches_of_each(self, driver: Driver, event: str) -> None:
        """Feed, and wait until each query of the driver has committed a batch, and all of them two or more."""
        self.feed.extra()
        queries = set(self.pipeline.queries)
        self.until(driver, event, lambda: queries <= {*driver.batches_by_query} and driver.batches >= 2)

    def ended(self, drivers: list[Driver], event: str) -> Driver:
        """Feed, and wait until one of the drivers has ended by itself. Raises `MillstreamError` if none does."""
        started = last_fed = time.monotonic()
        while True:
            for driver in drivers:
                if driver.wait(LOOK) is not None:
                    return driver
            now = time.monotonic()
            if now - started > PATIENCE:
                raise MillstreamError(f"{event}: both drivers keep running", f"see {drivers[0].log}")
            if now - last_fed > PACE:
                self.feed.extra()
                last_fed = now

    def unlock(self) -> None:
        """Remove the lock file of each checkpoint, as an operator might who believes that its owner is dead."""
        for query in self.pipeline.queries:
            lock_file(self.folder(query)).unlink(missing_ok=True)

    def died(self) -> None:
        """After a kill, end all other drivers, and count the batches that the next start must deliver again."""
        self.drivers.end()
        self.tally.replayed += sum(self._is_unfinished(query) for query in self.pipeline.queries)

    def forget(self, query: str) -> bool:
        """Delete the last commit of a checkpoint; return False if there is none."""
        checkpoint = Checkpoint(self.folder(query))
        last = checkpoint.committed()
        if last is None:
            return False
        for name in (f"{last}", f".{last}.crc"):
            with contextlib.suppress(FileNotFoundError):
                (checkpoint.folder / "commits" / name).unlink()
        return True

    def folder(self, query: str) -> Path:
        """Return the checkpoint folder of a query."""
        return require_local(self.pipeline.checkpoint_folder(query), "a proof")

    def _is_unfinished(self, query: str) -> bool:
        checkpoint = Checkpoint(self.folder(query))
        return checkpoint.planned() != checkpoint.committed()
