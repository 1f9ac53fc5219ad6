"""The reports of all checked specs and scripts together, for programs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.checking.batch_check import CheckReport
    from millstream.diagnostics.finding import Finding


def format_reports(reports: Sequence[CheckReport], form: str) -> str:
    """Format the reports of all targets together for programs."""
    from millstream.analysis.rule_pages import read_page
    from millstream.diagnostics.judged_query import judged_to_json
    from millstream.diagnostics.render import render
    from millstream.spec.secrets.redaction import redact_values

    findings = [_drop_redacted_edit(finding) for report in reports for finding in report.checked.findings]
    texts = {name: text for report in reports for name, text in report.checked.texts.items()}
    guarantees = [
        {**promise.plain(), "target": report.target.name}
        for report in reports
        for promise in report.checked.promises
    ]
    pages = {code: text for code in {finding.code for finding in findings} if (text := read_page(code))}
    judged = [
        judged_to_json(query, report.target.name)
        for report in reports
        for query in report.checked.judged or ()
    ]
    return redact_values(
        render(findings, texts, form, False, guarantees, pages, judged)  # type: ignore[arg-type]  # noqa: FBT003 - colour
    )


def _drop_redacted_edit(finding: Finding) -> Finding:
    """Return a finding without an edit that contains a known secret: programs write edits into files."""
    from millstream.spec.secrets.redaction import redact_values

    lines = finding.edit.insert if finding.edit else ()
    return replace(finding, edit=None) if any(redact_values(line) != line for line in lines) else finding
