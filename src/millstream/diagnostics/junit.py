"""Print findings as JUnit XML, which build servers show as tests: a failing test for each error, by file."""

from __future__ import annotations

import re
from html import escape  # xml.sax would load an HTTP client
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Finding, Severity
from millstream.diagnostics.snippet import escape_control, mask_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NOT_XML = re.compile("[\ufffe\uffff]")


def format_junit(
    findings: Sequence[Finding], files: Sequence[str], judged: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Build one suite: errors fail, other findings pass with their text, and a file without findings passes.

    A query of a script passes if it was checked, and is skipped with the reason if not.
    """
    files_with_findings = {finding.span.file for finding in findings if finding.span}
    cases = [_build_case(finding) for finding in findings]
    cases += [
        f'    <testcase classname={quote_attribute(file)} name="check"/>'
        for file in files
        if file not in files_with_findings
    ]
    cases += [_build_query_case(query) for query in judged]
    failures = sum(finding.severity is Severity.ERROR for finding in findings)
    skipped = sum(not query["judged"] for query in judged)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0"'
    counts += f' skipped="{skipped}"' if skipped else ""
    suite = [f'  <testsuite name="millstream check" {counts}>', *cases, "  </testsuite>"]
    return "\n".join(
        ['<?xml version="1.0" encoding="utf-8"?>', f"<testsuites {counts}>", *suite, "</testsuites>\n"]
    )


def _build_query_case(query: Mapping[str, Any]) -> str:
    line = f" line {query['line']}" if query["line"] else ""
    name = f"query {query['query']}{line}"
    opening = f"    <testcase classname={quote_attribute(query['target'])} name={quote_attribute(name)}"
    if query["judged"]:
        return f"{opening}/>"
    return f"{opening}>\n      <skipped message={quote_attribute(query['reason'])}/>\n    </testcase>"


def _build_case(finding: Finding) -> str:
    span = finding.span
    name = f"{finding.code} {finding.name}" + (f" line {span.line}" if span else "")
    position = f" file={quote_attribute(span.file)} line={quote_attribute(str(span.line))}" if span else ""
    opening = (
        f"    <testcase classname={quote_attribute(span.file if span else 'millstream')} "
        f"name={quote_attribute(name)}{position}>"
    )
    parts = [
        mask_secrets(finding.message),
        finding.why and f"why: {finding.why}",
        finding.fix and f"fix: {finding.fix}",
    ]
    text = escape(
        "\n".join(remove_invalid_characters(line) for part in parts if part for line in part.splitlines()),
        quote=False,
    )
    if finding.severity is Severity.ERROR:
        attributes = (
            f"type={quote_attribute(finding.code)} message={quote_attribute(mask_secrets(finding.message))}"
        )
        body = f"      <failure {attributes}>{text}</failure>"
    else:
        body = f"      <system-out>{finding.severity}: {text}</system-out>"
    return f"{opening}\n{body}\n    </testcase>"


def quote_attribute(text: str) -> str:
    """Quote a text as an XML attribute, without characters that XML does not allow."""
    return f'"{escape(remove_invalid_characters(text))}"'


def remove_invalid_characters(text: str) -> str:
    """Remove control characters, and characters that XML does not allow, from a text."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", escape_control(text))
