"""A pytest plugin that notes which lines of src/millstream each test reaches; `mutants.py map` loads it."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mutant_code import ROOT
from mutant_run import MAP_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

_PREFIX = str(ROOT / "src/millstream")


class Reached:
    """Lines by file, and the tests that reach each; the seconds of each test without its fixtures."""

    def __init__(self) -> None:
        self.lines: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self.seconds: dict[str, float] = {}
        self._owned: dict[CodeType, bool] = {}
        self._now: set[tuple[str, int]] = set()

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        """Follow the frames of our own files alone."""
        code = frame.f_code
        if (is_owned := self._owned.get(code)) is None:
            is_owned = self._owned[code] = code.co_filename.startswith(_PREFIX)
        if not is_owned:
            return None
        if event == "line":
            self._now.add((code.co_filename, frame.f_lineno))
        return self.trace

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Trace a test, its fixtures too, in the threads that begin in it."""
        self._now = set()
        number = len(self.seconds)
        self.seconds[item.nodeid] = 0.0
        sys.settrace(self.trace)
        threading.settrace(self.trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            for file, line in sorted(self._now):
                self.lines[Path(file).relative_to(ROOT).as_posix()][line].append(number)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how long a test takes."""
        if report.when == "call":
            self.seconds[report.nodeid] = round(report.duration, 3)

    def pytest_sessionfinish(self) -> None:
        """Write the map."""
        text = json.dumps({"seconds": self.seconds, "lines": self.lines})
        Path(os.environ[MAP_OUT]).write_text(text, encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Trace where a map was asked for."""
    if MAP_OUT in os.environ:
        config.pluginmanager.register(Reached(), "mutant-map")
