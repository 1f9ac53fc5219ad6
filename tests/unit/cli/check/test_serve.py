"""An editor that asks `check --server` about a file gets edits that it can apply."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.checking.batch_check import CheckReport
from millstream.checking.check import CheckResult
from millstream.checking.targets import CheckTarget, TargetKind
from millstream.cli.check.reports import format_reports
from millstream.cli.check.serve import check_file
from millstream.diagnostics.finding import Edit, Finding, Severity, Span
from millstream.spec.secrets.redaction import REDACTOR

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINE = "      FROM a JOIN b ON a.token = b.token AND a.shop = 'ravenswood'"


class SpecChecker:
    """A checker that has found one thing in each spec."""

    def all(self, targets: list[CheckTarget]) -> list[CheckReport]:
        """Return the finding about each target."""
        return [report_on(target) for target in targets]


def report_on(target: CheckTarget) -> CheckReport:
    """Return a report with one finding, whose edit contains what looks like a secret."""
    edit = Edit(target.name, 3, (LINE,), 1)
    finding = Finding("MS550", "x", Severity.WARNING, "a cast", Span(target.name, 4, 1, 4, 5), edit=edit)
    return CheckReport(target, CheckResult([finding], (), [], (), {}))


@pytest.fixture
def _secret() -> Iterator[None]:
    """The process knows a secret whose value is also a word of the spec."""
    REDACTOR.protect("ravenswood")
    yield
    REDACTOR.clear()


def edits(document: dict[str, Any]) -> list[Any]:
    """Return the edit of each finding in the JSON of a check."""
    return [finding["edit"] for finding in document["findings"]]


@pytest.mark.usefixtures("_secret")
def test_an_editor_gets_the_lines_of_an_edit_as_they_are(tmp_path: Path) -> None:
    spec = tmp_path / "pipeline.yml"
    spec.write_text("sources: {}\n")

    answer = check_file(SpecChecker(), spec)  # type: ignore[arg-type]

    assert [edit["insert"] for edit in edits(answer)] == [[LINE]]


@pytest.mark.usefixtures("_secret")
def test_other_programs_get_no_edit_in_which_a_secret_is_redacted(tmp_path: Path) -> None:
    report = report_on(CheckTarget(TargetKind.SPEC, tmp_path / "pipeline.yml"))
    (finding,) = report.checked.findings
    finding = replace(finding, edit=Edit("pipeline.yml", 3, ("shop: ravenswood",)))
    report = replace(report, checked=replace(report.checked, findings=[finding]))

    assert edits(json.loads(format_reports([report], "json"))) == [None]
