"""Findings for other programs: one line each, JSON, and GitHub's workflow commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Edit, Finding, Severity
from millstream.diagnostics.snippet import mask, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def concise(findings: Sequence[Finding]) -> str:
    """`file:line:col: CODE message`, one line each."""
    return "".join(
        printable(f"{place(found)}{found.code} {mask(found.message)}") + "\n" for found in findings
    )


def place(found: Finding) -> str:
    """`file:line:col: `, or nothing for a finding that has no place."""
    return f"{found.span.file}:{found.span.line}:{found.span.column}: " if found.span else ""


def as_json(findings: Sequence[Finding], guarantees: Sequence[Mapping[str, Any]]) -> str:
    """`{"findings": […], "guarantees": […]}`. Keys are only ever added to its objects."""
    whole = {
        "findings": [plain(found) for found in findings],
        "guarantees": [{**one, "reasons": list(one["reasons"])} for one in guarantees],
    }
    return json.dumps(whole, indent=2, default=str) + "\n"


def plain(found: Finding) -> dict[str, Any]:
    """A finding as the JSON of `check` has it."""
    span, edit = found.span, found.edit
    return {
        "code": found.code,
        "name": found.name,
        "severity": found.severity.value,
        "message": mask(found.message),
        "file": span.file if span else None,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "end_line": span.end_line if span else None,
        "end_column": span.end_column if span else None,
        "why": found.why,
        "fix": found.fix,
        "edit": _edit(edit) if edit else None,
        "query": found.query,
    }


def _edit(edit: Edit) -> dict[str, Any]:
    lines = [mask(line) for line in edit.insert]
    return {"file": edit.file, "line": edit.line, "drop": edit.drop, "insert": lines, "safe": edit.safe}


def github(findings: Sequence[Finding]) -> str:
    """GitHub's workflow commands: each finding becomes a mark in the change it concerns."""
    return "".join(_command(found) + "\n" for found in findings)


def _command(found: Finding) -> str:
    fields = {"title": f"{found.code} {found.name}"}
    if span := found.span:
        fields |= {"file": span.file, "line": str(span.line), "col": str(span.column)}
        # GitHub takes an end column only within one line.
        fields |= {"endLine": str(span.end_line)}
        if span.end_line == span.line:
            fields |= {"endColumn": str(span.end_column)}
    words = [mask(found.message), found.why and f"why: {found.why}", found.fix and f"fix: {found.fix}"]
    text = _escaped("\n".join(filter(None, words)))
    named = ",".join(
        f"{key}={_escaped(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in fields.items()
    )
    return f"::{_GITHUB[found.severity]} {named}::{text}"


def _escaped(text: str) -> str:
    """A text in the form that workflow commands take, with nothing that the log's reader would obey."""
    lines = "\n".join(printable(line) for line in text.split("\n"))
    return lines.replace("%", "%25").replace("\n", "%0A")
