"""`millstream demo` that is closed in any way: nothing of it runs on, and nothing of it feeds the next one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.spark import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="processes are found in /proc"
)

COMMAND = [sys.executable, "-m", "millstream", "demo", "--rate", "50"]
# Seconds; a demo promises ten, which a loaded machine may not keep.
WITHIN = 60.0
# What runs in the middle of a demo, by a part of its command line.
PARTS = (
    "millstream demo",
    "millstream traffic",
    "devstack.supervisor.supervisor",
    "kafka.Kafka",
    "postgres",
    "SparkSubmit",
)
TRAINER = "spark.cds_training"


class Demo:
    """A demo in a folder of its own, on a terminal of its own, and every process that comes from it."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder = folder
        self._mark = f"MILLSTREAM_TEST_MARK={uuid.uuid4().hex}"
        name, _, value = self._mark.partition("=")
        without = ("CI", "KAFKA", "POSTGRES_URL", "MILLSTREAM_ARCHIVE")
        texts = {key: text for key, text in os.environ.items() if key not in without}
        self.terminal, inside = os.openpty()
        self.process = subprocess.Popen(
            COMMAND,
            cwd=folder,
            env={**texts, **env, name: value, "TERM": "dumb"},
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(inside)
        self.shown = b""
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def processes(self) -> dict[int, str]:
        """The command line of each of its processes, by pid. PostgreSQL's overwrite their environment."""
        actual = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if entry.joinpath("stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                    continue
                text = entry.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                inside = str(entry.joinpath("cwd").readlink()).startswith(str(self.folder))
                if inside or self._mark.encode() in entry.joinpath("environ").read_bytes():
                    actual[int(entry.name)] = text
        return actual

    def has(self, *parts: str) -> bool:
        """Does a process run for each of these?"""
        lines = self.processes().values()
        return all(any(part in line for line in lines) for part in parts)

    def close_terminal(self) -> None:
        """Take the terminal away, as closing its window does."""
        self._closed.set()
        self._reader.join()  # the system keeps a terminal that is being read
        os.close(self.terminal)

    def end(self) -> None:
        """For the end of a test: kill what is left."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(30)
        if not self._closed.is_set():
            self.close_terminal()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while not self._closed.is_set():
                if select.select([self.terminal], [], [], 0.1)[0]:
                    self.shown += os.read(self.terminal, 65_536)


def wait_for(true: Callable[[], bool], seconds: float) -> bool:
    """Has it become true within that time?"""
    pause, stop = threading.Event(), time.monotonic() + seconds
    while not (actual := true()) and time.monotonic() < stop:
        pause.wait(0.05)
    return actual


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    started: list[Demo] = []

    def start(**env: str) -> Demo:
        # A cache with jars and no class-data archive: the demo has a reason to make one.
        cache = tmp_path / "cache"
        if not cache.exists():
            cache.mkdir()
            cache.joinpath("jars").symlink_to(cache_folder.create_folder("jars"))
        started.append(Demo(tmp_path, MILLSTREAM_HOME=str(cache), **env))
        return started[-1]

    yield start
    for item in started:
        item.end()


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_a_first_demo_that_ctrl_c_ends_leaves_an_archive_and_then_no_process(
    demo: Callable[..., Demo], tmp_path: Path
) -> None:
    running = demo()
    assert wait_for(lambda: running.has(*PARTS, TRAINER), 240), running.shown.decode()

    running.process.send_signal(signal.SIGINT)

    assert wait_for(lambda: running.process.poll() is not None, WITHIN)
    assert wait_for(lambda: not running.processes(), 500), running.processes()
    assert len(list((tmp_path / "cache/archives").glob("*.jsa"))) == 1


@pytest.mark.parametrize(
    "close",
    [
        pytest.param(lambda demo: demo.process.send_signal(signal.SIGKILL), id="SIGKILL"),
        pytest.param(
            lambda demo: demo.process.send_signal(signal.SIGHUP),
            id="SIGHUP",
            marks=pytest.mark.whole,
        ),
        pytest.param(Demo.close_terminal, id="closed-terminal", marks=pytest.mark.whole),
    ],
)
def test_a_demo_that_is_closed_leaves_no_process_behind(
    demo: Callable[..., Demo], close: Callable[[Demo], None]
) -> None:
    running = demo()
    assert wait_for(lambda: running.has(*PARTS, TRAINER), 240), running.shown.decode()

    close(running)

    assert wait_for(lambda: running.process.poll() is not None and not running.processes(), WITHIN), (
        running.processes()
    )
