"""Findings as SARIF 2.1.0, which code hosts and editors read."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from millstream.diagnostics.finding import Edit, Finding, Severity, Span
from millstream.diagnostics.lines import Lines
from millstream.diagnostics.snippet import mask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif(
    findings: Sequence[Finding], texts: Mapping[str, str], pages: Mapping[str, str], version: str
) -> str:
    """One run with all findings. A finding keeps its fingerprint when lines are added above it.

    `pages` are the texts that explain codes.
    """
    names = {found.code: found.name for found in findings}
    codes = sorted(names)
    lines = {file: Lines(content) for file, content in texts.items()}
    seen: Counter[str] = Counter()
    driver = {
        "name": "millstream",
        "version": version,
        "semanticVersion": version,
        "rules": [_rule(code, names[code], pages.get(code, "")) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(found, codes.index(found.code), lines, seen) for found in findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(code: str, name: str, page: str) -> dict[str, Any]:
    """What a viewer shows of a code: its name, the first paragraph of its page, and the page."""
    rule: dict[str, Any] = {"id": code, "name": name, "shortDescription": {"text": name.replace("-", " ")}}
    if page:
        first = page.strip().split("\n\n")[1:2]
        rule["fullDescription"] = {"text": " ".join(first[0].split()) if first else name}
        rule["help"] = {"text": page, "markdown": page}
    else:
        rule["help"] = {"text": f"millstream explain {code}"}
    return rule


def _result(found: Finding, index: int, lines: Mapping[str, Lines], seen: Counter[str]) -> dict[str, Any]:
    words = [
        f"{mask(found.message)}.",
        found.why and f"Why: {found.why}.",
        found.fix and f"Fix: {found.fix}.",
    ]
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": index,
        "level": _LEVELS[found.severity],
        "message": {"text": " ".join(filter(None, words))},
        "partialFingerprints": {"millstreamFinding/v1": _fingerprint(found, lines, seen)},
    }
    if found.span:
        result["locations"] = [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(found.span.file),
                    "region": _region(found.span),
                }
            }
        ]
    if found.edit:
        result["fixes"] = [_fix(found.edit, found.fix, lines.get(found.edit.file))]
    return result


def _artifact(file: str) -> dict[str, str]:
    """A file as a URI: relative ones stay so, for the reader to place."""
    path = PurePath(file)
    return {"uri": path.as_uri() if path.is_absolute() else quote(path.as_posix())}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _fix(edit: Edit, words: str, known: Lines | None) -> dict[str, Any]:
    """A deletion of whole lines, of none for an insertion, and what comes in their place."""
    first, last = edit.line + 1, edit.line + 1 + edit.drop
    at = {"startLine": first, "startColumn": 1, "endLine": last, "endColumn": 1}
    text = "".join(f"{mask(line)}\n" for line in edit.insert)
    if known and edit.drop and last > len(known):
        # Behind the last line there is no other in which the deletion could end.
        at |= {"endLine": len(known), "endColumn": len(known.line(len(known))) + 1}
        text = text.removesuffix("\n")
    change = {
        "artifactLocation": _artifact(edit.file),
        "replacements": [{"deletedRegion": at, "insertedContent": {"text": text}}],
    }
    return {"description": {"text": words or "change lines"}, "artifactChanges": [change]}


def _fingerprint(found: Finding, lines: Mapping[str, Lines], seen: Counter[str]) -> str:
    """What stays the same when a finding only moves: its code, file, query and the text of its line."""
    known = lines.get(found.span.file) if found.span else None
    line = known.line(found.span.line).strip() if known and found.span else found.message
    same = "\0".join((found.code, found.span.file if found.span else "", found.query or "", line))
    seen[same] += 1
    return hashlib.sha256(f"{same}\0{seen[same]}".encode(errors="replace")).hexdigest()[:32]
