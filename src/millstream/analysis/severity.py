"""The severities that a spec gives to rules: `rules: {MS106: error}`."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from millstream.analysis.pages import refused
from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.finding import Severity
from millstream.spec.severity import RuleSeverity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from millstream.diagnostics.finding import Finding, Span
    from millstream.pipeline.places import Places


_CODE = re.compile(r"MS\d{3}")


def weighed(
    found: Sequence[Finding],
    given: Mapping[str, RuleSeverity],
    places: Places,
    known: Collection[str],
    fixed: Collection[str],
) -> list[Finding]:
    """The findings with the severities that the spec gives, and one for each that cannot be given.

    `known` are the codes of rules; those in `fixed`, and those of pages that say that Spark refuses, stay errors.
    """
    held = {code for code in given if code in fixed or refused(code)}
    free = {code: severity for code, severity in given.items() if code in known and code not in held}
    kept = []
    for one in found:
        match free.get(one.code):
            case None:
                kept.append(one)
            case RuleSeverity.IGNORE:
                pass
            case severity:
                kept.append(replace(one, severity=Severity(severity.value)))
    return [*kept, *_complaints(given, places, known, held)]


def _complaints(
    given: Mapping[str, RuleSeverity], places: Places, known: Collection[str], held: Collection[str]
) -> Iterator[Finding]:
    for code, severity in given.items():
        span = places.key("rules", code)
        if code not in known:
            yield _unknown(code, span, known)
        elif code in held and severity is not RuleSeverity.ERROR:
            yield finding(
                "MS017",
                f"{code} stays an error",
                span,
                why="Spark does not start such a pipeline"
                if refused(code)
                else "it would run what no check saw",
                fix="remove the line, and cure what it finds",
            )


def _unknown(code: str, span: Span, known: Collection[str]) -> Finding:
    # Another number is another rule: only what is no code at all is taken for misspelt.
    near = [] if _CODE.fullmatch(code) else get_close_matches(code.upper(), known, n=1)
    return finding(
        "MS016",
        f"no rule has the code {code}",
        span,
        why="a severity can be given to the codes of rules" if code.startswith("MS") else "",
        fix=f"write {near[0]}" if near else "see docs/reference/rules.md for the codes of rules",
    )
