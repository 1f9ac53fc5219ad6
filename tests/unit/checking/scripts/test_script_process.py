"""The process of a script under check: the modules that it finds, and the threads that it leaves."""

from __future__ import annotations

import sys
import threading
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
