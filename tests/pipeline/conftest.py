"""Collects this folder's pages: each `yaml` block, loaded as a spec, must give the `snapshot` block after it.

`UPDATE_SNAPSHOTS=1 pytest tests/pipeline` rewrites the snapshots.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from millstream.diagnostics.render import render
from millstream.pipeline.spec_file import load_text

_LINES = r"(?:(?!#|```)[^\n]*\n)*"
_BLOCK = r"(?:(?!```)[^\n]*\n)*"
_CASE = re.compile(
    rf"^(?P<head>#+ (?P<title>[^\n]+)\n{_LINES}```yaml\n(?P<spec>{_BLOCK})```\n\n```snapshot\n)"
    rf"(?P<wanted>{_BLOCK})```$",
    re.MULTILINE,
)
_ENV = {"HOME_OF_DATA": "data", "PASSWORD": "S3CR3T-canary", "COUNT": "many"}


class Page(pytest.File):
    """A page of specs and what is said about them."""

    def collect(self) -> Any:
        for match in _CASE.finditer(self.path.read_text(encoding="utf-8")):
            yield Case.from_parent(self, name=match["title"], spec=match["spec"], wanted=match["wanted"])


class Case(pytest.Item):
    """One spec of a page."""

    def __init__(self, *, spec: str, wanted: str, **more: Any) -> None:
        super().__init__(**more)
        self.spec, self.wanted = spec, wanted

    def runtest(self) -> None:
        loaded = load_text("pipeline.yml", self.spec, Path("nowhere"), _ENV)
        got = render(loaded.findings, loaded.texts) or "no findings\n"
        if os.environ.get("UPDATE_SNAPSHOTS") and got != self.wanted:
            page = self.path.read_text(encoding="utf-8")
            page = _CASE.sub(
                lambda match: match["head"] + got + "```" if match["title"] == self.name else match[0], page
            )
            self.path.write_text(page, encoding="utf-8")
            return
        assert got == self.wanted

    def repr_failure(self, excinfo: Any) -> Any:
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


def pytest_collect_file(parent: Any, file_path: Path) -> Page | None:
    return Page.from_parent(parent, path=file_path) if file_path.suffix == ".md" else None
