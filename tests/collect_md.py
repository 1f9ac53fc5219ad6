"""Collects the pages of codes that can be judged without Spark; tests/spark/rules judges all pages with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rule_pages
from millstream.analysis.rule_runner import load_rules

if TYPE_CHECKING:
    from pathlib import Path


class Page(pytest.File):
    """The page of one code."""

    def collect(self) -> Any:
        # A script is run, and asks Spark for what it reads.
        for block in (item for item in rule_pages.read(self.path) if item.file == rule_pages.SPEC):
            yield Block.from_parent(self, name=f"block {block.number}", block=block)


class Block(pytest.Item):
    """One pipeline of a page."""

    def __init__(self, *, block: rule_pages.Block, **more: Any) -> None:
        super().__init__(**more)
        self.block = block

    def runtest(self) -> None:
        folder: Path = self.config._tmp_path_factory.mktemp(self.path.stem)  # type: ignore[attr-defined]
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            checked = rule_pages.judge(self.block, folder, None)
        rule_pages.compare(self.block, checked, planned=False)

    def repr_failure(self, excinfo: Any) -> Any:
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, self.block.line, f"{self.path.stem} {self.name}"


def pytest_collect_file(parent: Any, file_path: Path) -> Page | None:
    if file_path.suffix != ".md" or "millstream" not in file_path.parts:
        return None
    rule = load_rules().get(file_path.name[:5].upper())
    actual = file_path.parent.name == "pages" and file_path.parent.parent.name == "diagnostics"
    if (rule and file_path.parent.name == "rules" and rule.judge is None) or (actual and not rule):
        return Page.from_parent(parent, path=file_path)
    return None
