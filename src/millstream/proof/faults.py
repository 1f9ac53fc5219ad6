"""What goes wrong beside kills: something around a driver that stays alive, and two drivers where one may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.proof.driver import Driver
    from millstream.proof.scene import Scene

# What a run ends with that may not have a checkpoint, or has lost its place to another run.
CANNOT_GO_ON = 3


class Fault(Protocol):
    """Something that goes wrong and is put right again."""

    @property
    def name(self) -> str:
        """What a person asks for it by."""

    def play(self, scene: Scene) -> None:
        """Make it happen from a start to an end. Raises `MillstreamError` where it shows a defect."""


@dataclass(frozen=True)
class Around:
    """Something goes wrong around a driver and is put right; the same driver commits a batch after it."""

    name: str
    act: Callable[[], None]

    def play(self, scene: Scene) -> None:
        """Strike once a batch is committed."""
        driver = scene.drivers.start()
        scene.batches(driver, 1, f"the fault {self.name}")
        self.act()
        scene.batches(driver, 1, f"a batch after the fault {self.name}")


@dataclass(frozen=True)
class SecondDriver:
    """Another driver is started on the same checkpoints: the lock turns it away."""

    name: str = "second-driver"

    def play(self, scene: Scene) -> None:
        """The second one ends with `CANNOT_GO_ON`, and the first one goes on."""
        first = scene.drivers.start()
        scene.batches(first, 1, "a second driver came")
        second = scene.drivers.start()
        scene.until(first, "the second driver was turned away", lambda: second.wait(0) is not None)
        if second.wait(0) != CANNOT_GO_ON:
            raise MillstreamError(
                f"a second driver ended with {second.wait(0)} and not with {CANNOT_GO_ON}",
                f"two drivers on one checkpoint each write its batches; see {second.log}",
            )
        scene.batches(first, 1, "a batch after the second driver")


@dataclass(frozen=True)
class LostLock:
    """The lock files are removed while a driver runs, and a second one starts: both deliver the same batches.

    One of them must end with a sentence. Which one is not said: they race for each batch.
    """

    name: str = "lock-lost"

    def play(self, scene: Scene) -> None:
        """Two drivers until one has ended."""
        first = scene.running("the lock was lost")
        scene.batches(first, 1, "the lock was lost")
        scene.unlock()
        second = scene.drivers.start()
        told(scene.ended([first, second], "the lock was lost"), self.name)


@dataclass(frozen=True)
class Zombie:
    """A driver stands still at a point, a successor writes its batch and more, and then it goes on."""

    point: str

    @property
    def name(self) -> str:
        """`zombie-delta` for a point of Delta's writer."""
        return f"zombie-{self.point.partition('.')[0]}"

    def play(self, scene: Scene) -> None:
        """The one that was away ends with a sentence, and its successor goes on."""
        first = scene.running("it was to stand still", f"{self.point}=stop")
        scene.feed.extra()
        scene.until(first, f"it reached {self.point}", lambda: first.frozen)
        first.freeze()
        scene.unlock()
        second = scene.drivers.start()
        scene.batches(second, 2, "it had written what its predecessor had begun")
        first.thaw()
        scene.until(second, "the one that was away had ended", lambda: first.wait(0) is not None)
        told(first, self.name)
        scene.batches(second, 1, "a batch after its predecessor came back")


def told(driver: Driver, fault: str) -> None:
    """It ended by itself, and said why. Raises `MillstreamError` where it did not."""
    code = driver.wait(0)
    # All that it said is read once it is gone.
    driver.kill()
    if code not in (1, CANNOT_GO_ON) or not driver.troubles:
        raise MillstreamError(
            f"under the fault {fault} a driver ended with {code}"
            + (f": {driver.last_words()}" if driver.last_words() else " and said nothing"),
            f"it must end with a sentence that says who took its place; see {driver.log}",
        )
