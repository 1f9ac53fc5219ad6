"""Kill a moved pipeline again and again while it is fed, and let it come to its end."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import MillstreamError
from millstream.proof.aims import RANDOM, STARTING, Aim
from millstream.proof.scene import LOOK, PACE, PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from millstream.proof.driver import Driver
    from millstream.proof.faults import Fault
    from millstream.proof.scene import Scene

# How long, in seconds, a driver may live without a batch before its kill is given up for a random one.
IDLE = 45.0
# How long the run to the end may take, in seconds: it reads whatever the last driver left.
END = 900.0
# Portions that one start may take, so that some are left for the later ones.
PORTIONS = 3


@dataclass
class Killing:
    """Kills the drivers of a scene. `say` tells a person how far it is."""

    scene: Scene
    say: Callable[[str], None]

    def disturb(self, faults: Sequence[Fault]) -> None:
        """Let each fault happen, from a start of its own to its end."""
        for fault in faults:
            self.say(f"fault {fault.name}")
            self.scene.feed.extra()
            try:
                fault.play(self.scene)
            finally:
                self.scene.died()
            self.scene.tally.faults[fault.name] += 1

    def kill(self, aims: Iterable[Aim], kills: int) -> None:
        """Start and kill, once for each aim. Raises `MillstreamError` for a driver that ends by itself."""
        for number, aim in enumerate(aims, 1):
            self.say(f"kill {number} of {kills}: {aim.point}")
            self.scene.feed.next()
            began = time.monotonic()
            self._once(aim, reserve=(kills - number) * PORTIONS)
            self.scene.tally.seconds.append(time.monotonic() - began)

    def finish(self) -> None:
        """Feed what is left, close all windows, and run to the end; a commit that is deleted changes nothing."""
        feed = self.scene.feed
        while feed.left:
            feed.next()
        feed.close(1)
        self.say("running to the end")
        self._end(last=False)
        for query in self.scene.pipeline.queries:
            self.scene.tally.removed += self.scene.forget(query)
        # Rows of a later time: what waited for the watermark of the batch before comes out.
        feed.close(2)
        self.say("running once more, with the last commit of each checkpoint deleted")
        self._end(last=True)

    def _once(self, aim: Aim, reserve: int) -> None:
        driver = self.scene.drivers.start(aim.armed)
        tally = self.scene.tally
        try:
            if self._until(driver, aim, reserve):
                tally.kills[aim.point] += 1
            else:
                tally.outlived[aim.point] += 1
                tally.kills[RANDOM] += 1
        finally:
            self.scene.died()

    def _until(self, driver: Driver, aim: Aim, reserve: int) -> bool:
        """Wait for the aim's moment; False when it did not come. Feeds meanwhile."""
        feed = self.scene.feed
        fed_at, seen, ordered = 0.0, 0, time.monotonic()
        lively = first = None
        while (code := driver.wait(LOOK)) is None:
            moment = time.monotonic()
            if first is None and driver.started.is_set():
                first = lively = moment
            since = driver.began if aim.point == STARTING else first
            if aim.seconds is not None and since is not None and moment - since >= aim.seconds:
                return True
            if first is None or lively is None:
                if moment - ordered > PATIENCE:
                    raise MillstreamError(
                        f"the driver did not start: {driver.last_words()}", f"see {driver.log}"
                    )
                continue
            if driver.batches > seen or moment - fed_at > PACE:
                if feed.left > reserve:
                    feed.next()
                    lively = moment
                fed_at = moment
                if driver.batches > seen:
                    lively, seen = moment, driver.batches
            if moment - lively > IDLE:
                return False
        if code != -signal.SIGKILL:
            raise MillstreamError(
                f"the driver ended by itself with {code}: {driver.last_words()}", f"see {driver.log}"
            )
        return True

    def _end(self, *, last: bool) -> None:
        driver = self.scene.drivers.start(to_the_end=True, last=last)
        code = driver.wait(END)
        self.scene.drivers.end()
        if code != 0:
            said = "was not done in time" if code is None else f"ended with {code}"
            raise MillstreamError(
                f"the run to the end {said}: {driver.last_words()}",
                f"see {driver.log}; the checkpoints are kept",
            )
