"""A driver to be killed: a process that starts up, runs the copied pipeline on order, and reports its events."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Seconds that a killed process may take to disappear; the kernel needs milliseconds.
GONE = 30.0


@dataclass(frozen=True)
class Order:
    """A line of JSON on a driver's standard input. The first order starts the run; later ones arm failpoints."""

    failpoints: str = ""
    """The armed failpoints, in the syntax of `MILLSTREAM_FAILPOINTS`."""
    to_the_end: bool = False
    """Whether the driver ends once it has caught up."""
    backfill: bool = False
    """Whether the driver runs backfills of past ranges, and no query, until the next order."""

    def line(self) -> str:
        """Return the order as a line of JSON."""
        return json.dumps(asdict(self)) + "\n"

    @staticmethod
    def of(line: str) -> Order | None:
        """Parse an order; None at the end of input, which means that the driver is not needed."""
        return Order(**json.loads(line)) if line else None


class Driver:
    """One driver process. `command` runs in a separate process group, so that its JVM can be killed with it.

    The driver starts its JVM and Spark immediately, but does not touch the pipeline before `go`, so that it can
    start up while another driver runs.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        self.log = log
        self.began: float | None = None
        """Monotonic time at which the driver had both an order and a session."""
        self.started = threading.Event()
        """Set when a query runs."""
        self.batches_by_query: Counter[str] = Counter()
        """Number of committed batches that the driver has reported, by query."""
        self.queries: set[str] = set()
        """Queries that the driver has reported as started."""
        self.troubles: list[str] = []
        """Reported reasons of failed batches and of queries that gave up."""
        self.backfilled: Counter[str] = Counter()
        """Rows that its backfills added, by query and sink; a sink without added rows has the count 0."""
        self.backfills = 0
        """Number of reported backfills of a sink."""
        self._ready = False
        self._ordered = False
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
        self._reader = threading.Thread(target=self._read_events, daemon=True)
        self._reader.start()

    def go(self, armed: str | None = None, *, to_the_end: bool = False) -> None:
        """Order the driver to run the pipeline. If it has died in the meantime, `wait` reports that."""
        self._ordered = True
        self._send(Order(armed or "", to_the_end))
        self._begin()

    def backfill(self) -> None:
        """Order the driver to run backfills until `arm` is called."""
        self._ordered = True
        self._send(Order(backfill=True))

    def arm(self, armed: str) -> None:
        """Arm failpoints; the next pass of a failpoint counts as its first."""
        self._send(Order(armed))

    def wait(self, seconds: float) -> int | None:
        """Return the exit code, or None if the driver still runs after that time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """Send SIGKILL to the driver and its JVM at once; harmless if they have ended."""
        self._signal(signal.SIGKILL)
        self._process.wait(GONE)
        self._reader.join(timeout=5)
        for pipe in (self._process.stdin, self._process.stdout):
            # Unsent orders are lost with the process.
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]

    def kill_python(self) -> None:
        """Send SIGKILL to Python alone; its JVM ends by itself seconds later. `kill` ends the remaining processes."""
        self._process.kill()
        self._process.wait(GONE)

    def kill_jvm(self) -> None:
        """Send SIGKILL to the driver's JVM alone, if it has one."""
        for pid in child_pids(self._process.pid, "java"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def freeze(self) -> None:
        """Freeze the driver and its JVM with SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the driver after `freeze`, or after it stopped itself at a failpoint."""
        self._signal(signal.SIGCONT)

    @property
    def is_frozen(self) -> bool:
        """Whether the driver's Python process is stopped."""
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] == "T"

    def has_locked(self, files: Iterable[Path]) -> bool:
        """Return whether the driver's Python process has one of these files locked, by `flock`."""
        inodes = {str(file.stat().st_ino) for file in files}
        for line in Path("/proc/locks").read_text().splitlines():
            # `1: FLOCK ADVISORY WRITE 4711 fe:00:123456 0 EOF`; a waiter has an arrow after the number.
            match line.split():
                case [_, "FLOCK", _, _, process, place, *_] if process == str(self._process.pid):
                    if place.rpartition(":")[2] in inodes:
                        return True
        return False

    def last_words(self) -> str:
        """Return the last reported reason of a failure, or the last line of the log that names an error."""
        if self._process.poll() is not None:
            # What it reported before it ended may not have been read yet.
            self._reader.join(timeout=5)
        if self.troubles:
            return self.troubles[-1]
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        log_lines = [line.strip() for line in lines[-40:] if line.strip()]
        return next(
            (line for line in reversed(log_lines) if "rror" in line), log_lines[-1] if log_lines else ""
        )

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _send(self, order: Order) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(order.line())
            self._process.stdin.flush()

    def _begin(self) -> None:
        if self._ready and self._ordered and self.began is None:
            self.began = time.monotonic()

    @property
    def batches(self) -> int:
        """Number of committed batches that the driver has reported."""
        return self.batches_by_query.total()

    def _read_events(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):
                self._handle_event(json.loads(line))

    def _handle_event(self, event: dict[str, object]) -> None:
        match event.get("event"):
            case "ready":
                self._ready = True
                self._begin()
            case "query_started":
                self.queries.add(str(event.get("query", "")))
                self.started.set()
            case "batch_committed":
                self.batches_by_query[str(event.get("query", ""))] += 1
            case "backfilled":
                self.backfills += 1
                self.backfilled[f"{event['query']} {event['sink']}"] += int(str(event["added"]))
            case "retry" | "query_failed":
                self.troubles.append(str(event.get("reason", "")))


def child_pids(pid: int, name: str) -> list[int]:
    """Return the ids of a process's children with that name; empty if the process is gone."""
    pids = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            child, _, rest = stat.read_text().partition(" (")
        except OSError:
            continue  # the process ended in the meantime
        command, _, fields = rest.rpartition(") ")
        if command == name and int(fields.split()[1]) == pid:
            pids.append(int(child))
    return pids
