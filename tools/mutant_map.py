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

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

OUT = "MILLSTREAM_MUTANT_MAP"
SOURCES = "src/millstream"
_ROOT = Path(__file__).parent.parent
_PREFIX = str(_ROOT / SOURCES)


class Reached:
    """Lines by file, and the tests that reach each; a test that took less time comes first."""

    def __init__(self) -> None:
        self.lines: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        self.took: dict[str, float] = {}
        self._now: set[tuple[str, int]] = set()

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        """Follow the frames of our own files alone."""
        if not frame.f_code.co_filename.startswith(_PREFIX):
            return None
        if event == "line":
            self._now.add((frame.f_code.co_filename, frame.f_lineno))
        return self.trace

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Trace a test, its fixtures too."""
        self._now = set()
        sys.settrace(self.trace)
        threading.settrace(self.trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            for file, line in self._now:
                self.lines[str(Path(file).relative_to(_ROOT))][line].append(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how long a test takes."""
        self.took[report.nodeid] = self.took.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the map."""
        actual = {
            file: {
                line: sorted(tests, key=lambda item: self.took.get(item, 0.0))
                for line, tests in lines.items()
            }
            for file, lines in self.lines.items()
        }
        Path(os.environ[OUT]).write_text(json.dumps(actual), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Trace where a map was asked for."""
    if OUT in os.environ:
        config.pluginmanager.register(Reached(), "mutant-map")
