"""Findings as JUnit XML, which build servers show as tests: a failing one for each error, by file."""

from __future__ import annotations

import re
from html import escape  # xml.sax would load an HTTP client
from typing import TYPE_CHECKING

from millstream.diagnostics.finding import Finding, Severity
from millstream.diagnostics.snippet import mask, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOT_XML = re.compile("[\ufffe\uffff]")


def junit(findings: Sequence[Finding], files: Sequence[str]) -> str:
    """One suite; errors are failures, other findings pass with their words, a file without any passes."""
    told = {found.span.file for found in findings if found.span}
    cases = [_case(found) for found in findings]
    cases += [
        f'    <testcase classname={attribute(file)} name="check"/>' for file in files if file not in told
    ]
    failures = sum(found.severity is Severity.ERROR for found in findings)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0"'
    suite = [f'  <testsuite name="millstream check" {counts}>', *cases, "  </testsuite>"]
    return "\n".join(
        ['<?xml version="1.0" encoding="utf-8"?>', f"<testsuites {counts}>", *suite, "</testsuites>\n"]
    )


def _case(found: Finding) -> str:
    span = found.span
    name = f"{found.code} {found.name}" + (f" line {span.line}" if span else "")
    place = f" file={attribute(span.file)} line={attribute(str(span.line))}" if span else ""
    head = f"    <testcase classname={attribute(span.file if span else 'millstream')} name={attribute(name)}{place}>"
    words = [mask(found.message), found.why and f"why: {found.why}", found.fix and f"fix: {found.fix}"]
    text = escape("\n".join(plain(line) for part in words if part for line in part.splitlines()), quote=False)
    if found.severity is Severity.ERROR:
        said = f"type={attribute(found.code)} message={attribute(mask(found.message))}"
        body = f"      <failure {said}>{text}</failure>"
    else:
        body = f"      <system-out>{found.severity}: {text}</system-out>"
    return f"{head}\n{body}\n    </testcase>"


def attribute(text: str) -> str:
    """A text as an attribute with its quotes, with nothing that XML cannot hold."""
    return f'"{escape(plain(text))}"'


def plain(text: str) -> str:
    """A text of characters that XML can hold: what is no character at all goes, besides what a terminal obeys."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", printable(text))
