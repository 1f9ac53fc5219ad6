"""Apply the severities that a spec gives to rules: `rules: {MS106: error}`."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from millstream.analysis.rule_pages import is_refused_by_spark
from millstream.diagnostics.finding import Severity
from millstream.diagnostics.spec_codes import build_finding
from millstream.spec.rule_severity import RuleSeverity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from millstream.diagnostics.finding import Finding, Span
    from millstream.pipeline.load.places import ValuePositions


_CODE = re.compile(r"MS\d{3}")


def apply_severities(
    reported_findings: Sequence[Finding],
    settings: Mapping[str, RuleSeverity],
    places: ValuePositions,
    known: Collection[str],
    fixed: Collection[str],
) -> list[Finding]:
    """Return the findings with the severities of the spec, and a finding for each severity that cannot be set.

    `known` are the codes of rules. Codes in `fixed`, and codes whose page says that Spark refuses, stay errors.
    """
    fixed_codes = {code for code in settings if code in fixed or is_refused_by_spark(code)}
    severities = {
        code: severity for code, severity in settings.items() if code in known and code not in fixed_codes
    }
    findings = []
    for reported in reported_findings:
        match severities.get(reported.code):
            case None:
                findings.append(reported)
            case RuleSeverity.IGNORE:
                pass
            case severity:
                findings.append(replace(reported, severity=Severity(severity.value)))
    return [*findings, *_report_invalid(settings, places, known, fixed_codes)]


def _report_invalid(
    settings: Mapping[str, RuleSeverity],
    places: ValuePositions,
    known: Collection[str],
    fixed_codes: Collection[str],
) -> Iterator[Finding]:
    for code, severity in settings.items():
        span = places.key("rules", code)
        if code not in known:
            yield _report_unknown_code(code, span, known)
        elif code in fixed_codes and severity is not RuleSeverity.ERROR:
            yield build_finding(
                "MS017",
                f"{code} stays an error",
                span,
                why="Spark does not start such a pipeline"
                if is_refused_by_spark(code)
                else "otherwise unchecked code would run",
                fix="remove the line, and fix the finding",
            )


def _report_unknown_code(code: str, span: Span, known: Collection[str]) -> Finding:
    # A code with another number is another rule, so suggest a correction only for text that is not a code.
    matches = [] if _CODE.fullmatch(code) else get_close_matches(code.upper(), known, n=1)
    return build_finding(
        "MS016",
        f"no rule has the code {code}",
        span,
        why="only the codes of rules can have a severity" if code.startswith("MS") else "",
        fix=f"write {matches[0]}" if matches else "run 'millstream docs rules' for a list of all codes",
    )
