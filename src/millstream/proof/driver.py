"""A driver to be killed: a process that gets ready, runs the moved pipeline when told, and tells its events."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# How long a process that was killed may take to be gone, in seconds; the kernel needs milliseconds.
GONE = 30.0


@dataclass(frozen=True)
class Order:
    """What a driver is told, as one line of JSON on its standard input: the first lets it run, others arm points."""

    failpoints: str = ""
    """What is armed, in the words of `MILLSTREAM_FAILPOINTS`."""
    to_the_end: bool = False
    """Does it end once it is caught up?"""

    def line(self) -> str:
        """The order as the line that is sent."""
        return json.dumps(asdict(self)) + "\n"

    @staticmethod
    def of(line: str) -> Order | None:
        """The order in a line; None at the end of input, which tells a driver that it is not needed."""
        return Order(**json.loads(line)) if line else None


class Driver:
    """One start. `command` is run in a process group of its own, so that its JVM can be killed with it.

    It starts its JVM and Spark at once and touches nothing of the pipeline before it is told to `go`, so that it
    can get ready while another one runs.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        self.log = log
        self.began: float | None = None
        """When it had both an order and a session, on the monotonic clock."""
        self.started = threading.Event()
        """Set once a query runs."""
        self.batches = 0
        """Batches that were committed, as far as this process told."""
        self.queries: set[str] = set()
        """Queries that it told to have started."""
        self.troubles: list[str] = []
        """What it told of batches that failed and queries that gave up."""
        self._ready = False
        self._told = False
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                list(command),
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def go(self, armed: str | None = None, *, to_the_end: bool = False) -> None:
        """Let it run the pipeline. One that has died meanwhile is found by `wait`."""
        self._told = True
        self._tell(Order(armed or "", to_the_end))
        self._begin()

    def arm(self, armed: str) -> None:
        """From here on the next pass of a point counts as its first."""
        self._tell(Order(armed))

    def wait(self, seconds: float) -> int | None:
        """Its exit code, or None when it still runs after that long."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """SIGKILL to the driver and its JVM at once; harmless when they have ended."""
        self._signal(signal.SIGKILL)
        self._process.wait(GONE)
        self._reader.join(timeout=5)
        for pipe in (self._process.stdin, self._process.stdout):
            # What was not sent any more goes with the process.
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]

    def freeze(self) -> None:
        """Stop it and its JVM where they stand."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on after `freeze`, or after it stopped itself at a point."""
        self._signal(signal.SIGCONT)

    @property
    def frozen(self) -> bool:
        """Does its Python process stand still?"""
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] == "T"

    def last_words(self) -> str:
        """The last line that it told of what went wrong."""
        if self.troubles:
            return self.troubles[-1]
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        told = [line.strip() for line in lines[-40:] if line.strip()]
        return next((line for line in reversed(told) if "rror" in line), told[-1] if told else "")

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _tell(self, order: Order) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(order.line())
            self._process.stdin.flush()

    def _begin(self) -> None:
        if self._ready and self._told and self.began is None:
            self.began = time.monotonic()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):
                self._hear(json.loads(line))

    def _hear(self, told: dict[str, object]) -> None:
        match told.get("event"):
            case "ready":
                self._ready = True
                self._begin()
            case "query_started":
                self.queries.add(str(told.get("query", "")))
                self.started.set()
            case "batch_committed":
                self.batches += 1
            case "retry" | "query_failed":
                self.troubles.append(str(told.get("reason", "")))
