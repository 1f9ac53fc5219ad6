"""Print findings as SARIF 2.1.0, which code hosts and editors read."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from millstream.diagnostics.finding import Edit, Finding, Severity, Span
from millstream.diagnostics.formats import find_public_edit
from millstream.diagnostics.lines import TextLines
from millstream.diagnostics.snippet import mask_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def format_sarif(
    findings: Sequence[Finding],
    texts: Mapping[str, str],
    pages: Mapping[str, str],
    version: str,
    judged: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Build one run with all findings. The fingerprint of a finding does not change if lines are added above it.

    `pages` are the documentation pages of codes. A query in `judged` that was not checked becomes a notification.
    """
    names = {finding.code: finding.name for finding in findings}
    codes = sorted(names)
    lines = {file: TextLines(content) for file, content in texts.items()}
    fingerprint_counts: Counter[str] = Counter()
    driver = {
        "name": "millstream",
        "version": version,
        "semanticVersion": version,
        "rules": [_build_rule(code, names[code], pages.get(code, "")) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [_build_invocation(judged)],
        "columnKind": "unicodeCodePoints",
        "results": [
            _build_result(finding, codes.index(finding.code), lines, fingerprint_counts)
            for finding in findings
        ],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _build_invocation(judged: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Describe the run: how many queries of scripts were checked, and why each of the others was not."""
    if not judged:
        return {"executionSuccessful": True}
    notifications = [
        {
            "level": "note",
            "message": {"text": f"query '{query['query']}' was not checked: {query['reason']}."},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": _build_location(query["file"] or query["target"]),
                        "region": {"startLine": query["line"] or 1},
                    }
                }
            ],
        }
        for query in judged
        if not query["judged"]
    ]
    counts = {"queries": len(judged), "queriesJudged": len(judged) - len(notifications)}
    return {"executionSuccessful": True, "toolExecutionNotifications": notifications, "properties": counts}


def _build_rule(code: str, name: str, page: str) -> dict[str, Any]:
    """Describe a code for a viewer: its name, the first paragraph of its page, and the page."""
    rule: dict[str, Any] = {"id": code, "name": name, "shortDescription": {"text": name.replace("-", " ")}}
    if page:
        first_paragraph = page.strip().split("\n\n")[1:2]
        rule["fullDescription"] = {"text": " ".join(first_paragraph[0].split()) if first_paragraph else name}
        rule["help"] = {"text": page, "markdown": page}
    else:
        rule["help"] = {"text": f"millstream explain {code}"}
    return rule


def _build_result(
    finding: Finding, index: int, lines: Mapping[str, TextLines], fingerprint_counts: Counter[str]
) -> dict[str, Any]:
    parts = [
        f"{mask_secrets(finding.message)}.",
        finding.why and f"Why: {finding.why}.",
        finding.fix and f"Fix: {finding.fix}.",
    ]
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": " ".join(filter(None, parts))},
        "partialFingerprints": {
            "millstreamFinding/v1": _compute_fingerprint(finding, lines, fingerprint_counts)
        },
    }
    if finding.span:
        result["locations"] = [
            {
                "physicalLocation": {
                    "artifactLocation": _build_location(finding.span.file),
                    "region": _build_region(finding.span),
                }
            }
        ]
    if edit := find_public_edit(finding):
        result["fixes"] = [_build_fix(edit, finding.fix, lines.get(edit.file))]
    return result


def _build_location(file: str) -> dict[str, str]:
    """Convert a file path to a URI; a relative path stays relative."""
    path = PurePath(file)
    return {"uri": path.as_uri() if path.is_absolute() else quote(path.as_posix())}


def _build_region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _build_fix(edit: Edit, words: str, file_lines: TextLines | None) -> dict[str, Any]:
    """Convert an edit to a deletion of whole lines (none for an insertion) and the inserted text."""
    first, last = edit.line + 1, edit.line + 1 + edit.drop
    region = {"startLine": first, "startColumn": 1, "endLine": last, "endColumn": 1}
    text = "".join(f"{line}\n" for line in edit.insert)
    if file_lines and edit.drop and last > len(file_lines):
        # After the last line there is no line at which the deletion could end.
        region |= {"endLine": len(file_lines), "endColumn": len(file_lines.line(len(file_lines))) + 1}
        text = text.removesuffix("\n")
    change = {
        "artifactLocation": _build_location(edit.file),
        "replacements": [{"deletedRegion": region, "insertedContent": {"text": text}}],
    }
    return {"description": {"text": words or "change lines"}, "artifactChanges": [change]}


def _compute_fingerprint(
    finding: Finding, lines: Mapping[str, TextLines], fingerprint_counts: Counter[str]
) -> str:
    """Hash the parts that do not change when a finding moves: its code, file, query and the text of its line."""
    file_lines = lines.get(finding.span.file) if finding.span else None
    line = file_lines.line(finding.span.line).strip() if file_lines and finding.span else finding.message
    key = "\0".join((finding.code, finding.span.file if finding.span else "", finding.query or "", line))
    fingerprint_counts[key] += 1
    return hashlib.sha256(f"{key}\0{fingerprint_counts[key]}".encode(errors="replace")).hexdigest()[:32]
