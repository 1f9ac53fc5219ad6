"""The edit of a finding cures it: the spec still loads, the finding is gone, and no other line is touched."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

import pytest

import rule_pages
from millstream.analysis.rule_pages import find_pages
from millstream.checking.apply_fixes import collect_edits, fix_findings
from millstream.checking.batch_check import Checker, CheckReport
from millstream.checking.targets import CheckTarget, TargetKind
from millstream.pipeline.spec_file import load_spec

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# An edit is shown below its finding, as numbered lines that go and come.
EDIT = re.compile(r"^ *\d+ [+-] ", re.MULTILINE)
# An edit may name a variable; the person who takes it has set that one.
VARIABLES = {
    "POSTGRES_PASSWORD": "from-the-environment",
    "ALERTS_TO_TOKEN": "from-the-environment",
    "KAFKA_PASSWORD": "from-the-environment",
}
BLOCKS = [
    pytest.param(block, id=f"{page.stem} block {block.number}")
    for page in find_pages().values()
    for block in rule_pages.read(page)
    if block.file == rule_pages.SPEC and block.snapshot and EDIT.search(block.snapshot)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_an_edit_cures_its_finding_and_touches_nothing_else(
    block: rule_pages.Block, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rule_pages.write(block, tmp_path)
    target = CheckTarget(TargetKind.SPEC, tmp_path / rule_pages.SPEC)
    checker = Checker(load=lambda path: load_spec(path, VARIABLES), _spark=spark)
    report = checker.recheck(target)
    waiting = collect_edits(report.checked.findings, unsafe=True)
    texts = {file: file.read_text() for file in tmp_path.rglob("*.*") if file.parent.name != "__pycache__"}

    assert waiting
    fixed = fix_findings(report, lambda: checker.recheck(target), unsafe=True)

    assert len(fixed.changes) >= len(waiting), _list_codes(fixed.report)
    assert fixed.report.checked.is_unreadable == report.checked.is_unreadable
    for file, before in texts.items():
        changed = [change.edit for change in fixed.changes if tmp_path / change.edit.file == file]
        diff = list(difflib.ndiff(before.splitlines(), file.read_text().splitlines()))
        assert sum(line.startswith("- ") for line in diff) <= sum(edit.drop for edit in changed)
        assert sum(line.startswith("+ ") for line in diff) <= sum(len(edit.insert) for edit in changed)


def _list_codes(report: CheckReport) -> list[str]:
    return [
        f"{finding.code} {finding.message} {finding.edit}"
        for finding in report.checked.findings
        if finding.edit
    ]
