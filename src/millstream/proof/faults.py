"""Faults other than kills: failures around a driver that stays alive, and two drivers for one checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.proof.driver import Driver
    from millstream.proof.environment import ProofRun

# Exit code of a run that may not use a checkpoint, or that was replaced by another run.
CANNOT_GO_ON = 3
# Attempts to freeze a driver outside of a commit of another query.
FREEZES = 10


class Fault(Protocol):
    """A failure that is caused and then repaired."""

    @property
    def name(self) -> str:
        """The fault's name on the command line."""

    def play(self, scene: ProofRun) -> None:
        """Run the fault from a start to an end. Raises `MillstreamError` if it reveals a defect."""


@dataclass(frozen=True)
class OutageFault:
    """A failure around a driver, caused and repaired; the same driver commits a batch afterwards."""

    name: str
    act: Callable[[], None]

    def play(self, scene: ProofRun) -> None:
        """Cause the failure after a batch was committed."""
        driver = scene.drivers.start()
        scene.batches(driver, 1, f"the fault {self.name}")
        self.act()
        scene.batches(driver, 1, f"a batch after the fault {self.name}")


@dataclass(frozen=True)
class SecondDriver:
    """Another driver is started on the same checkpoints; the lock rejects it."""

    name: str = "second-driver"

    def play(self, scene: ProofRun) -> None:
        """Check that the second driver ends with `CANNOT_GO_ON` and the first one continues."""
        first = scene.drivers.start()
        scene.batches(first, 1, "a second driver came")
        second = scene.drivers.start()
        scene.until(first, "the second driver was rejected", lambda: second.wait(0) is not None)
        if second.wait(0) != CANNOT_GO_ON:
            raise MillstreamError(
                f"a second driver ended with {second.wait(0)} and not with {CANNOT_GO_ON}",
                f"two drivers on one checkpoint each write its batches; see {second.log}",
            )
        scene.batches(first, 1, "a batch after the second driver")


@dataclass(frozen=True)
class LockLoss:
    """The lock files are removed while a driver runs, and a second one starts; both deliver the same batches.

    One of them must end with an explanation. It may be either one, because they race for each batch.
    """

    name: str = "lock-lost"

    def play(self, scene: ProofRun) -> None:
        """Run two drivers until one has ended."""
        first = scene.running("the lock was lost")
        scene.batches(first, 1, "the lock was lost")
        scene.unlock()
        second = scene.drivers.start()
        require_explained_exit(scene.ended([first, second], "the lock was lost"), self.name)


@dataclass(frozen=True)
class FrozenDriver:
    """A driver freezes at a failpoint, a successor writes its batch and more, and then the first driver resumes.

    `locks` are names of files that a process locks for a commit.
    """

    point: str
    locks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The fault's name: `zombie-delta` for a failpoint of Delta's writer."""
        return f"zombie-{self.point.partition('.')[0]}"

    def play(self, scene: ProofRun) -> None:
        """Check that the frozen driver ends with an explanation after it resumes, and its successor continues."""
        first = scene.running("it was to freeze", f"{self.point}=stop")
        self._freeze(scene, first)
        scene.unlock()
        second = scene.drivers.start()
        # Of each query: if the predecessor were the first to plan a batch of one, the successor would have to end.
        scene.batches_of_each(second, "it had written the batch that its predecessor had started")
        first.resume()
        scene.until(second, "the frozen driver had ended", lambda: first.wait(0) is not None)
        require_explained_exit(first, self.name)
        scene.batches(second, 1, "a batch after its predecessor resumed")

    def _freeze(self, scene: ProofRun, driver: Driver) -> None:
        """Freeze a driver at the failpoint while none of its other queries is in a commit.

        A successor would have to wait for the lock of that table, which a suspended process keeps.
        """
        for _ in range(FREEZES):
            scene.feed.extra()
            scene.until(driver, f"it reached {self.point}", lambda: driver.is_frozen)
            driver.freeze()
            files = [file for name in self.locks for file in driver.log.parent.rglob(name)]
            if not driver.has_locked(files):
                return
            driver.arm(f"{self.point}=stop")
            driver.resume()
        raise MillstreamError(
            f"each of {FREEZES} times that the driver reached {self.point}, another query was in a commit",
            "run the proof again, or without this fault",
        )


def require_explained_exit(driver: Driver, fault: str) -> None:
    """Check that a driver ended by itself with an explanation. Raises `MillstreamError` if it did not."""
    code = driver.wait(0)
    # All of its output has been read only after the process is gone.
    driver.kill()
    if code not in (1, CANNOT_GO_ON) or not driver.troubles:
        raise MillstreamError(
            f"under the fault {fault} a driver ended with {code}"
            + (f": {driver.last_words()}" if driver.last_words() else " and no explanation"),
            f"it must end with a message that names its successor; see {driver.log}",
        )
