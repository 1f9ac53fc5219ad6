"""Print findings as JUnit XML, which build servers show as tests: a failing test for each error, by file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape  # xml.sax would load an HTTP client
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Finding, Severity
from millstream.diagnostics.snippet import escape_control, mask_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NOT_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True)
class JunitSuite:
    """One `<testsuite>`: its name, the XML of its cases, and its counts in the order of their attributes."""

    name: str
    cases: Sequence[str]
    counts: Mapping[str, object] = field(default_factory=dict)


def format_suites(suites: Sequence[JunitSuite], counts: Mapping[str, object]) -> str:
    """Format a whole JUnit document. `counts` are those of all suites together."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<testsuites{_format_attributes(counts)}>"]
    for suite in suites:
        lines.append(f"  <testsuite{_format_attributes({'name': suite.name, **suite.counts})}>")
        lines += [*suite.cases, "  </testsuite>"]
    return "\n".join([*lines, "</testsuites>\n"])


def format_case(
    attributes: Mapping[str, object], result: str = "", text: str = "", **result_attributes: str
) -> str:
    """Format one `<testcase>`. `result` is its child: `failure`, `error`, `skipped`, `system-out`; empty if none."""
    opening = f"    <testcase{_format_attributes(attributes)}"
    if not result:
        return f"{opening}/>"
    lines = (remove_invalid_characters(line) for line in text.splitlines())
    content = escape("\n".join(lines), quote=False)
    child = f"<{result}{_format_attributes(result_attributes)}"
    child += f">{content}</{result}>" if content else "/>"
    return f"{opening}>\n      {child}\n    </testcase>"


def format_findings(
    findings: Sequence[Finding],
    files: Sequence[str],
    judged: Sequence[Mapping[str, Any]] = (),
    command: str = "check",
) -> str:
    """Build one suite: errors fail, other findings pass with their text, and a file without findings passes.

    `command` is the one that has the findings. A query of a script passes if it was checked, and is skipped with the
    reason if not.
    """
    files_with_findings = {finding.span.file for finding in findings if finding.span}
    cases = [_format_finding(finding) for finding in findings]
    cases += [
        format_case({"classname": file, "name": command}) for file in files if file not in files_with_findings
    ]
    cases += [_format_query(query) for query in judged]
    counts: dict[str, object] = {
        "tests": len(cases),
        "failures": sum(finding.severity is Severity.ERROR for finding in findings),
        "errors": 0,
    }
    if skipped := sum(not query["judged"] for query in judged):
        counts["skipped"] = skipped
    return format_suites([JunitSuite(f"millstream {command}", cases, counts)], counts)


def _format_query(query: Mapping[str, Any]) -> str:
    line = f" line {query['line']}" if query["line"] else ""
    attributes = {"classname": query["target"], "name": f"query {query['query']}{line}"}
    if query["judged"]:
        return format_case(attributes)
    return format_case(attributes, "skipped", message=query["reason"])


def _format_finding(finding: Finding) -> str:
    span = finding.span
    attributes: dict[str, object] = {
        "classname": span.file if span else "millstream",
        "name": f"{finding.code} {finding.name}" + (f" line {span.line}" if span else ""),
        **({"file": span.file, "line": span.line} if span else {}),
    }
    message = mask_secrets(finding.message)
    parts = [message, finding.why and f"why: {finding.why}", finding.fix and f"fix: {finding.fix}"]
    text = "\n".join(part for part in parts if part)
    if finding.severity is Severity.ERROR:
        return format_case(attributes, "failure", text, type=finding.code, message=message)
    return format_case(attributes, "system-out", f"{finding.severity}: {text}")


def _format_attributes(attributes: Mapping[str, object]) -> str:
    return "".join(
        f' {name}="{escape(remove_invalid_characters(str(value)))}"' for name, value in attributes.items()
    )


def remove_invalid_characters(text: str) -> str:
    """Remove control characters, and characters that XML does not allow, from a text."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", escape_control(text))
