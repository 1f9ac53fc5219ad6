"""Print findings for other programs: one line each, JSON, and GitHub workflow commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Edit, Finding, Severity
from millstream.diagnostics.snippet import escape_control, mask_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def format_concise(findings: Sequence[Finding]) -> str:
    """Format findings as `file:line:col: CODE message`, one line each."""
    return "".join(
        escape_control(f"{format_position(finding)}{finding.code} {mask_secrets(finding.message)}") + "\n"
        for finding in findings
    )


def format_position(finding: Finding) -> str:
    """Format the position as `file:line:col: `; empty for a finding without a span."""
    return f"{finding.span.file}:{finding.span.line}:{finding.span.column}: " if finding.span else ""


def format_json(
    findings: Sequence[Finding],
    guarantees: Sequence[Mapping[str, Any]],
    judged: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Format findings as `{"findings": […], "guarantees": […], "queries": […]}`. Later versions only add keys.

    `queries` are those of scripts and declarative projects, with whether each was checked.
    """
    document = {
        "findings": [finding_to_json(finding) for finding in findings],
        "guarantees": [{**guarantee, "reasons": list(guarantee["reasons"])} for guarantee in guarantees],
        "queries": list(judged),
    }
    return json.dumps(document, indent=2, default=str) + "\n"


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """Convert a finding to the form in the JSON of `check`, without an edit that may contain a secret."""
    span = finding.span
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": mask_secrets(finding.message),
        "file": span.file if span else None,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "end_line": span.end_line if span else None,
        "end_column": span.end_column if span else None,
        "why": finding.why,
        "fix": finding.fix,
        "edit": edit_to_json(find_public_edit(finding)),
        "query": finding.query,
    }


def find_public_edit(finding: Finding) -> Edit | None:
    """Return the edit of a finding; None if a line of it looks like it contains a secret.

    Programs write the lines of an edit into files, so a masked line would replace the secret there.
    """
    edit = finding.edit
    return None if edit is None or any(mask_secrets(line) != line for line in edit.insert) else edit


def edit_to_json(edit: Edit | None) -> dict[str, Any] | None:
    """Convert an edit to the form in the JSON of `check`, with its lines as they are."""
    if edit is None:
        return None
    return {
        "file": edit.file,
        "line": edit.line,
        "drop": edit.drop,
        "insert": list(edit.insert),
        "safe": edit.is_safe,
    }


def format_github(findings: Sequence[Finding]) -> str:
    """Format findings as GitHub workflow commands, which annotate the lines of a pull request."""
    return "".join(_build_command(finding) + "\n" for finding in findings)


def _build_command(finding: Finding) -> str:
    fields = {"title": f"{finding.code} {finding.name}"}
    if span := finding.span:
        fields |= {"file": span.file, "line": str(span.line), "col": str(span.column)}
        # GitHub accepts an end column only within one line.
        fields |= {"endLine": str(span.end_line)}
        if span.end_line == span.line:
            fields |= {"endColumn": str(span.end_column)}
    parts = [
        mask_secrets(finding.message),
        finding.why and f"why: {finding.why}",
        finding.fix and f"fix: {finding.fix}",
    ]
    text = _escape("\n".join(filter(None, parts)))
    properties = ",".join(
        f"{key}={_escape(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in fields.items()
    )
    return f"::{_GITHUB[finding.severity]} {properties}::{text}"


def _escape(text: str) -> str:
    """Escape a text for a workflow command, without control characters."""
    lines = "\n".join(escape_control(line) for line in text.split("\n"))
    return lines.replace("%", "%25").replace("\n", "%0A")
