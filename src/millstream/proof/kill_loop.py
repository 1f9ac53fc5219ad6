"""Kill a copied pipeline repeatedly while it is fed, and finally run it to the end."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import MillstreamError
from millstream.proof.environment import LOOK, PACE, PATIENCE
from millstream.proof.kill_plan import RANDOM, STARTING, KilledProcess, KillTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from millstream.proof.driver import Driver
    from millstream.proof.environment import ProofRun
    from millstream.proof.faults import Fault

# Seconds without a batch after which a driver is killed at once, instead of at the planned failpoint.
IDLE = 45.0
# Seconds that the run to the end may take: it reads all input that the last driver left.
END = 900.0
# Seconds that Python may take to end after its JVM was killed; at worst a client waits for its transaction.
ENDS = 120.0
# Portions that one start may consume, so that some remain for later starts.
PORTIONS = 3


@dataclass
class KillLoop:
    """Kills the drivers of a scene. `say` reports the progress."""

    scene: ProofRun
    say: Callable[[str], None]

    def run_faults(self, faults: Sequence[Fault]) -> None:
        """Run each fault with its own driver, from start to end."""
        for fault in faults:
            self.say(f"fault {fault.name}")
            self.scene.feed.extra()
            try:
                fault.play(self.scene)
            finally:
                self.scene.died()
            self.scene.tally.faults[fault.name] += 1

    def kill(self, aims: Iterable[KillTarget], kills: int) -> None:
        """Start and kill a driver for each aim. Raises `MillstreamError` for a driver that ends by itself."""
        for number, aim in enumerate(aims, 1):
            victim_suffix = "" if aim.victim is KilledProcess.BOTH else f", {aim.victim} alone"
            self.say(f"kill {number} of {kills}: {aim.point}{victim_suffix}")
            self.scene.feed.next()
            started = time.monotonic()
            self._kill_one(aim, reserve=(kills - number) * PORTIONS)
            self.scene.tally.seconds.append(time.monotonic() - started)

    def beside(self, backfills: Driver) -> None:
        """Wait for the backfills that ran during the kills to end. Raises `MillstreamError` if one has failed."""
        self.say("waiting for the last backfill")
        backfills.arm("")
        code = backfills.wait(END)
        tally = self.scene.tally
        tally.backfills, tally.backfilled = backfills.backfills, backfills.backfilled.copy()
        if code != 0:
            outcome = "did not end in time" if code is None else f"ended with {code}"
            raise MillstreamError(
                f"the backfills during the kills {outcome}: {backfills.last_words()}", f"see {backfills.log}"
            )

    def finish(self) -> None:
        """Feed the remaining input, close all windows, and run to the end, also after a deleted commit."""
        feed = self.scene.feed
        while feed.portions_left:
            feed.next()
        feed.close(1)
        self.say("running to the end")
        self._run_to_end(last=False)
        for query in self.scene.pipeline.queries:
            self.scene.tally.removed += self.scene.forget(query)
        # Later rows, so that rows waiting for the watermark of the previous batch are written.
        feed.close(2)
        self.say("running once more, with the last commit of each checkpoint deleted")
        self._run_to_end(last=True)

    def _kill_one(self, aim: KillTarget, reserve: int) -> None:
        driver = self.scene.drivers.start(aim.armed)
        tally = self.scene.tally
        try:
            reached = self._wait_for(driver, aim, reserve)
            point = aim.point if reached else RANDOM
            tally.kills[point] += 1
            tally.victims[point, aim.victim] += 1
            if not reached:
                tally.missed_failpoints[aim.point] += 1
            self._kill_processes(driver, aim.victim)
        finally:
            self.scene.died()

    def _kill_processes(self, driver: Driver, victim: KilledProcess) -> None:
        """Kill one of the two processes; `died` kills both. Raises `MillstreamError` if Python does not end."""
        if victim is KilledProcess.PYTHON:
            driver.kill_python()
            # The next driver starts at once, while the JVM may still be writing.
            self.scene.drivers.detach(driver)
        if victim is KilledProcess.JVM:
            driver.kill_jvm()
            driver.resume()
            code = driver.wait(ENDS)
            if code in (None, 0):
                outcome = f"kept running for {ENDS:.0f} s" if code is None else "ended with 0"
                raise MillstreamError(
                    f"the driver {outcome} after its JVM had been killed: {driver.last_words()}",
                    f"see {driver.log}",
                )

    def _wait_for(self, driver: Driver, aim: KillTarget, reserve: int) -> bool:
        """Feed, and wait for the aim's moment; return False if it was not reached."""
        feed = self.scene.feed
        last_fed, batches, waiting_since = 0.0, 0, time.monotonic()
        last_active = first_started = None
        while (code := driver.wait(LOOK)) is None:
            now = time.monotonic()
            if driver.is_frozen:
                return True
            if first_started is None and driver.started.is_set():
                first_started = last_active = now
            since = driver.began if aim.point == STARTING else first_started
            if aim.seconds is not None and since is not None and now - since >= aim.seconds:
                return True
            if first_started is None or last_active is None:
                if now - waiting_since > PATIENCE:
                    raise MillstreamError(
                        f"the driver did not start: {driver.last_words()}", f"see {driver.log}"
                    )
                continue
            if driver.batches > batches or now - last_fed > PACE:
                if feed.portions_left > reserve:
                    feed.next()
                    last_active = now
                last_fed = now
                if driver.batches > batches:
                    last_active, batches = now, driver.batches
            if now - last_active > IDLE:
                return False
        if code != -signal.SIGKILL:
            raise MillstreamError(
                f"the driver ended by itself with {code}: {driver.last_words()}", f"see {driver.log}"
            )
        return True

    def _run_to_end(self, *, last: bool) -> None:
        driver = self.scene.drivers.start(to_the_end=True, last=last)
        code = driver.wait(END)
        self.scene.drivers.end()
        if code != 0:
            outcome = "did not finish in time" if code is None else f"ended with {code}"
            raise MillstreamError(
                f"the run to the end {outcome}: {driver.last_words()}",
                f"see {driver.log}; the checkpoints were not deleted",
            )
