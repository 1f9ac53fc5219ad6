"""Edits are made, checked again, and taken back where they do not cure."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from millstream.checking.apply_fixes import fix_findings, render_patch
from millstream.checking.batch_check import CheckReport
from millstream.checking.check import CheckResult
from millstream.checking.targets import CheckTarget, TargetKind
from millstream.diagnostics.failure import NotReady
from millstream.diagnostics.finding import Edit, Finding, Severity, Span

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def build_finding(file: Path, line: int, insert: str, *, word: str = "bad", safe: bool = True) -> Finding:
    edit = Edit(str(file), line - 1, (insert,), 1, safe)
    span = Span(str(file), line, 1, line, 2)
    return Finding("MS905", "odd-line", Severity.ERROR, f"line is {word}", span, fix="write it", edit=edit)


def checking(file: Path, *rules: Callable[[int, str], Finding | None]) -> Callable[[], CheckReport]:
    """A check whose rules look at each line."""

    def recheck() -> CheckReport:
        lines = file.read_bytes().decode().splitlines()
        findings = [
            finding for rule in rules for n, line in enumerate(lines, 1) if (finding := rule(n, line))
        ]
        return CheckReport(CheckTarget(TargetKind.SPEC, file), CheckResult(findings, (), [], (), {}))

    return recheck


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "p.yml"
    path.write_bytes("a: 1\r\nbad\r\nc: é\r\nbad".encode())
    return path


def test_every_edit_is_made_and_no_other_byte_changes(file: Path) -> None:
    second = checking(file, lambda n, line: build_finding(file, n, "good") if line == "bad" else None)

    fixed = fix_findings(second(), second, unsafe=False)

    assert file.read_bytes() == "a: 1\r\ngood\r\nc: é\r\ngood".encode()
    assert [change.edit.line for change in fixed.changes] == [1, 3]
    assert fixed.report.checked.findings == []


def test_edits_that_overlap_are_made_one_after_the_other(file: Path) -> None:
    item = checking(
        file,
        lambda n, line: (
            build_finding(file, n, line.replace("bad", "b"), word="long") if "bad" in line else None
        ),
        lambda n, line: (
            build_finding(file, n, line + "!", word="calm") if line[-1] != "!" and n == 2 else None
        ),
    )

    fix_findings(item(), item, unsafe=False)

    assert file.read_bytes().splitlines()[1] == b"b!"


def test_an_unsafe_edit_waits_to_be_asked_for(file: Path) -> None:
    second = checking(
        file, lambda n, line: build_finding(file, n, "good", safe=False) if line == "bad" else None
    )
    before = file.read_bytes()

    assert fix_findings(second(), second, unsafe=False).changes == ()
    assert file.read_bytes() == before
    assert len(fix_findings(second(), second, unsafe=True).changes) == 2


def test_an_edit_that_does_not_cure_is_taken_back(file: Path) -> None:
    second = checking(file, lambda n, line: build_finding(file, n, line + "bad") if "bad" in line else None)
    before = file.read_bytes()

    fixed = fix_findings(second(), second, unsafe=False)

    assert fixed.changes == ()
    assert file.read_bytes() == before


def test_an_edit_after_which_the_spec_cannot_be_read_is_taken_back(file: Path) -> None:
    broken = Finding("MS001", "unreadable-spec", Severity.ERROR, "no YAML")
    second = checking(
        file,
        lambda n, line: build_finding(file, n, "{") if line == "bad" else None,
        lambda _, line: broken if line == "{" else None,
    )
    before = file.read_bytes()

    assert fix_findings(second(), second, unsafe=False).changes == ()
    assert file.read_bytes() == before


@pytest.mark.parametrize("error", [KeyboardInterrupt(), NotReady("no Java was found")])
def test_edits_whose_check_is_interrupted_are_taken_back(file: Path, error: BaseException) -> None:
    report = checking(file, lambda n, line: build_finding(file, n, "good") if line == "bad" else None)()
    before = file.read_bytes()

    def fail() -> CheckReport:
        assert file.read_bytes() != before
        raise error

    with pytest.raises(type(error)):
        fix_findings(report, fail, unsafe=False)

    assert file.read_bytes() == before


def test_a_link_stays_a_link_and_the_mode_stays(file: Path) -> None:
    file.chmod(0o640)
    link = file.with_name("link.yml")
    link.symlink_to(file)
    second = checking(link, lambda n, line: build_finding(link, n, "good") if line == "bad" else None)

    fix_findings(second(), second, unsafe=False)

    assert link.is_symlink()
    assert b"good" in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_file_that_root_edits_stays_with_its_owner(file: Path) -> None:
    if is_root := os.geteuid() == 0:
        os.chown(file, 1234, 1235)
    owner = (1234, 1235) if is_root else (file.stat().st_uid, file.stat().st_gid)
    second = checking(file, lambda n, line: build_finding(file, n, "good") if line == "bad" else None)

    fix_findings(second(), second, unsafe=False)

    assert b"good" in file.read_bytes()
    assert (file.stat().st_uid, file.stat().st_gid) == owner


def test_a_file_that_is_gone_is_told(file: Path) -> None:
    report = checking(file, lambda n, line: build_finding(file, n, "good") if line == "bad" else None)()
    file.unlink()

    with pytest.raises(NotReady, match=r"p\.yml"):
        fix_findings(report, lambda: report, unsafe=False)


def test_the_difference_is_printed_and_nothing_written(file: Path) -> None:
    second = checking(file, lambda n, line: build_finding(file, n, "good") if line == "bad" else None)
    before = file.read_bytes()

    patch = render_patch(second().checked.findings, unsafe=False)

    assert patch.count("\n+good") == 2
    assert file.read_bytes() == before


def test_a_report_without_edits_is_left_alone(file: Path) -> None:
    bare = checking(
        file, lambda n, line: replace(build_finding(file, n, ""), edit=None) if line == "bad" else None
    )
    report = bare()

    assert fix_findings(report, bare, unsafe=True).report is report
