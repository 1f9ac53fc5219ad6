"""The process of a script under check: the modules that it finds, and the threads that it leaves."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts import script_process

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", ["module", "package", "folder"])
def test_a_script_imports_the_module_beside_it_though_another_of_the_name_is_loaded(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for home in ("first", "second"):
        (tmp_path / home / "tides").mkdir(parents=True)
        (tmp_path / home / "tides" / "depth.py").write_text(f"place = {home!r}")
    other = ModuleType("tides")
    if kind == "folder":
        other.__path__ = [str(tmp_path / "first" / "tides")]
    else:
        other.__file__ = str(tmp_path / "first" / "tides.py")
    if kind == "package":
        other.__path__ = [str(tmp_path / "first" / "tides")]
    monkeypatch.setitem(sys.modules, "tides", other)
    names: dict[str, str] = {}

    with script_process.as_python_runs(tmp_path / "second" / "job.py", []):
        exec("from tides.depth import place", names)

    assert names["place"] == "second"
    assert sys.modules["tides"] is other
    assert "tides.depth" not in sys.modules


@pytest.mark.parametrize("interval", [0.05, 3600], ids=["short", "an-hour"])
def test_timers_that_start_each_other_end_with_the_script(
    interval: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_process, "LONGEST_JOIN", 0.5)
    before, rounds = set(threading.enumerate()), []
    code = (
        "def send():\n    rounds.append(1)\n    len(rounds) < 20 and start()\n"
        f"def start():\n    threading.Timer({interval}, send).start()\nstart()"
    )

    with script_process.as_python_runs(tmp_path / "job.py", []):
        exec(code, {"threading": threading, "rounds": rounds})
    for thread in set(threading.enumerate()) - before:
        thread.join()

    assert len(rounds) == (1 if interval < 1 else 0)


ENDLESS = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from millstream.checking.scripts import script_process

script_process.LONGEST_JOIN = 0.2
names = {"threading": threading, "Pool": ThreadPoolExecutor, "never": threading.Event(), "heard": []}
_, place, code = sys.argv
with script_process.as_python_runs(Path(place), []):
    exec(compile(code, place, "exec"), names)
loops = [thread for thread in threading.enumerate() if getattr(thread, "_target", None) is names.get("turn", "")]
for thread in loops:
    thread.join(30)
print(names["heard"] + [thread for thread in loops if thread.is_alive()])
"""


@pytest.mark.parametrize(
    ("code", "heard"),
    [
        ("threading.Thread(target=never.wait).start()", "[]"),
        ("Pool(1).submit(never.wait)", "[]"),
        ("def turn():\n    while True: pass\nthreading.Thread(target=turn).start()", "[]"),
        ("def turn():\n    while True: pass\nthreading.Thread(target=turn, daemon=True).start()", "[]"),
        # Work that ends is awaited, as at the end of a Python process.
        ("threading.Thread(target=heard.append, args=(1,)).start()", "[1]"),
        ("pool = Pool(1)\nfor n in range(3): pool.submit(heard.append, n)", "[0, 1, 2]"),
    ],
    ids=["a-thread", "a-pool", "a-loop", "a-loop-in-a-daemon", "a-thread-that-ends", "a-pool-that-ends"],
)
def test_a_thread_that_does_not_end_keeps_no_process(code: str, heard: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS, str(tmp_path / "job.py"), code],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == heard


@pytest.mark.parametrize("is_main", [True, False], ids=["main", "other"])
def test_the_time_limit_ends_a_script_that_waits(is_main: bool) -> None:
    never, ended, start = threading.Event(), [], time.monotonic()

    def wait() -> None:
        # In any other thread the error is raised only between two statements.
        try:
            with script_process.time_limit(0.05):
                while not never.wait(60 if is_main else 0.01):
                    pass
        except script_process.WaitReached:
            ended.append(time.monotonic() - start < 30)

    before = signal.getsignal(signal.SIGURG)
    if is_main:
        wait()
    else:
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()

    assert ended == [True]
    assert signal.getsignal(signal.SIGURG) == before
