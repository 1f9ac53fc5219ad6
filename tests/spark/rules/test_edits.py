"""The edit of a finding cures it: the spec still loads, the finding is gone, and no other line is touched."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

import pytest

import rule_pages
from millstream.analysis.pages import pages
from millstream.pipeline.load import load
from millstream.runtime.checker import Checker, Report
from millstream.runtime.fixing import edits, fix
from millstream.runtime.targets import Kind, Target

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# An edit is shown below its finding, as numbered lines that go and come.
EDIT = re.compile(r"^ *\d+ [+-] ", re.MULTILINE)
BLOCKS = [
    pytest.param(block, id=f"{page.stem} block {block.number}")
    for page in pages().values()
    for block in rule_pages.read(page)
    if block.file == rule_pages.SPEC and block.snapshot and EDIT.search(block.snapshot)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_an_edit_cures_its_finding_and_touches_nothing_else(
    block: rule_pages.Block, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rule_pages.write(block, tmp_path)
    target = Target(Kind.SPEC, tmp_path / rule_pages.SPEC)
    checker = Checker(load=lambda path: load(path, {}), _spark=spark)
    report = checker.again(target)
    waiting = edits(report.checked.findings, unsafe=True)
    texts = {file: file.read_text() for file in tmp_path.rglob("*.*")}

    assert waiting
    done = fix(report, lambda: checker.again(target), unsafe=True)

    assert len(done.changes) >= len(waiting), _left(done.report)
    assert done.report.checked.unreadable == report.checked.unreadable
    for file, before in texts.items():
        changed = [change.edit for change in done.changes if tmp_path / change.edit.file == file]
        diff = list(difflib.ndiff(before.splitlines(), file.read_text().splitlines()))
        assert sum(line.startswith("- ") for line in diff) <= sum(edit.drop for edit in changed)
        assert sum(line.startswith("+ ") for line in diff) <= sum(len(edit.insert) for edit in changed)


def _left(report: Report) -> list[str]:
    return [f"{one.code} {one.message} {one.edit}" for one in report.checked.findings if one.edit]
