"""A pytest plugin that records what each test, fixture and process of a run takes; `suite_times.py` loads it.

One JSON object a line. CPU seconds are those of the worker and of every process that it started, so that they hardly
depend on what else the machine does.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "MILLSTREAM_SUITE_RECORD"
EVERY = 0.5
"""Seconds between two looks at the processes; what lives shorter is not counted as started."""
_TICKS = os.sysconf("SC_CLK_TCK")
# Bound here: tests of checked scripts replace the method of the class, and would take this wait for a script's.
_WAIT = threading.Event.wait


def kind_of(command: list[str]) -> str | None:
    """What a process is, by its command; None for one that is not counted."""
    program, rest = Path(command[0]).name, " ".join(command[1:])
    if program == "java":
        if "kafka.Kafka" in rest:
            return "kafka broker"
        return "spark jvm" if "SparkSubmit" in rest or "java.args" in rest else "other jvm"
    if program.startswith("postgres") and "-D" in command:
        return "postgres server"
    if program.startswith("chrom") and "--type=" not in rest:
        return "chromium"
    if program.startswith("python") and "pyspark.daemon" in rest:
        return "python worker of spark"
    if program == "millstream" or "-m millstream" in rest or "/bin/millstream" in rest:
        return "millstream command"
    return None


def marks_of(worker: str, file: Path) -> tuple[bytes, ...]:
    """What stands in the environment of a worker's processes, and not in that of another run beside it."""
    if not worker:
        return (str(file).encode(),)
    run = os.environ["PYTEST_XDIST_TESTRUNUID"]
    return f"PYTEST_XDIST_WORKER={worker}\0".encode(), run.encode()


@dataclass
class Processes:
    """The processes of one worker: those that carry its marks in their environment, and itself.

    A look must be cheap, as there are some ten for each test: of processes that are not the worker's own nothing is
    read but the number.
    """

    marks: tuple[bytes, ...]
    _other: set[int] = field(default_factory=set)
    _own: dict[int, str] = field(default_factory=dict)
    """By number: the start time, which tells a process from a later one of the same number."""

    def look(self) -> tuple[float, list[str]]:
        """CPU seconds of all that live, with those of their ended children; and kinds of those that are new."""
        numbers = {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 - ten times faster
        self._other &= numbers
        total, started = 0, []
        for number in numbers - self._other:
            folder = Path("/proc") / str(number)
            try:
                words = (folder / "stat").read_text().rpartition(")")[2].split()
                if self._own.get(number) != words[19]:
                    environment = (folder / "environ").read_bytes()
                    if not environment and words[20] != "0":
                        # It has an address space, which another program is just being loaded into.
                        continue
                    if number != os.getpid() and not all(mark in environment for mark in self.marks):
                        self._other.add(number)
                        continue
                    self._own[number] = words[19]
                    command = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    if number != os.getpid() and (kind := kind_of(command)):
                        started.append(kind)
                total += sum(int(word) for word in words[11:15])
            except OSError:
                # It ended while we looked, or is not ours to look at, as those of the kernel.
                self._other.add(number)
        return total / _TICKS, started


class Recorder:
    """Writes the lines of one worker."""

    def __init__(self, file: Path, worker: str) -> None:
        self.worker = worker
        self._file = file.open("a", buffering=1, encoding="utf-8")
        self._processes = Processes(marks_of(worker, file))
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._test = ""
        self._cpu = self._look()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def line(self, **what: Any) -> None:
        """Write a line."""
        self._file.write(json.dumps({"worker": self.worker, "at": round(time.time(), 2), **what}) + "\n")

    def cpu(self) -> float:
        """CPU seconds since the last call."""
        before, self._cpu = self._cpu, self._look()
        return max(0.0, self._cpu - before)

    def close(self) -> None:
        """Stop watching."""
        self._end.set()
        self._thread.join()
        self._file.close()

    def _look(self) -> float:
        with self._lock:
            total, started = self._processes.look()
        for kind in started:
            self.line(started=kind, test=self._test)
        return total

    def _watch(self) -> None:
        while not _WAIT(self._end, EVERY):
            self._look()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Remember which test it is."""
        self._test = nodeid

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write what a part of a test took."""
        spent = {"s": round(report.duration, 3), "cpu": round(self.cpu(), 2)}
        self.line(
            id=report.nodeid, when=report.when, outcome=report.outcome, load=os.getloadavg()[0], **spent
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Write what a fixture took, those that it asks for left out: they are set up before."""
        # Not the other way round: a look takes as long as a small fixture.
        cpu, began = self._look(), time.monotonic()
        value = yield
        seconds = time.monotonic() - began
        if seconds > 0.01:
            spent = {"s": round(seconds, 3), "cpu": round(max(0.0, self._look() - cpu), 2)}
            self.line(fixture=fixturedef.argname, scope=fixturedef.scope, base=fixturedef.baseid, **spent)
        return value


def pytest_configure(config: pytest.Config) -> None:
    """Record in each worker, or in the one process where there are none."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Recorder(Path(os.environ[VARIABLE]), worker), "suite-recorder")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop recording."""
    recorder = config.pluginmanager.unregister(name="suite-recorder")
    if isinstance(recorder, Recorder):
        recorder.close()
