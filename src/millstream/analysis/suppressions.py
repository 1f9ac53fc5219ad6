"""Comments that suppress a finding: `# millstream: allow MS201 — reason`, on its line or on the line above."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code
from millstream.diagnostics.finding import Finding, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CODE = Code("MS091", "bad-allow")
_ALLOW = re.compile(r"(?:#|--)\s*millstream:\s*allow\b(?P<codes>[\sA-Z\d,]*)(?P<reason>.*)")
_MS = re.compile(r"\bMS\d{3}\b")
_COMMENT = re.compile(r"^\s*(?:#|--|$)")


@dataclass(frozen=True)
class _AllowComment:
    span: Span
    codes: tuple[str, ...]
    reason: str
    lines: frozenset[int]


def apply_suppressions(
    reported_findings: Sequence[Finding], texts: Mapping[str, str], codes: set[str], judged: set[str]
) -> list[Finding]:
    """Return the findings that no comment allows, and a finding for each unused comment or one without a reason.

    `codes` are those that can be allowed. `judged` are those whose rules ran completely.
    """
    comments = [allow_comment for file, text in texts.items() for allow_comment in _read_comments(file, text)]
    used: set[tuple[Span, str]] = set()
    findings = []
    for finding in reported_findings:
        matching = [
            comment
            for comment in comments
            if finding.span and comment.span.file == finding.span.file and finding.span.line in comment.lines
        ]
        matching = [
            comment for comment in matching if finding.code in comment.codes and finding.code in codes
        ]
        used.update((comment.span, finding.code) for comment in matching)
        if not any(comment.reason for comment in matching):
            findings.append(finding)
    for allow_comment in comments:
        findings += _report_invalid_comment(allow_comment, used, codes, judged)
    return findings


def _report_invalid_comment(
    comment: _AllowComment, used: set[tuple[Span, str]], codes: set[str], judged: set[str]
) -> Iterator[Finding]:
    if not comment.codes:
        yield CODE.error(
            "the comment allows no code", comment.span, fix="write 'millstream: allow MS201 — reason'"
        )
    elif not comment.reason:
        message = f"the comment allows {', '.join(comment.codes)} without a reason"
        fix = f"write 'millstream: allow {', '.join(comment.codes)} — reason'"
        yield CODE.error(
            message, comment.span, why="the next reader cannot tell whether it is still valid", fix=fix
        )
    else:
        for code in comment.codes:
            if code not in codes:
                yield CODE.warning(
                    f"{code} cannot be allowed by a comment", comment.span, fix="remove the comment"
                )
            elif code in judged and (comment.span, code) not in used:
                message = f"the comment allows {code}, which is not found here"
                yield CODE.warning(message, comment.span, fix="remove the comment")


def _read_comments(file: str, text: str) -> Iterator[_AllowComment]:
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        comment = _ALLOW.search(line)
        if not comment:
            continue
        # A comment on a separate line applies to the next line that is not a comment.
        numbers = {number}
        if _COMMENT.match(line):
            numbers |= {
                next(
                    (
                        line_number
                        for line_number in range(number + 1, len(lines) + 1)
                        if not _COMMENT.match(lines[line_number - 1])
                    ),
                    0,
                )
            }
        reason = comment["reason"].strip(" \t\u2014\u2013-:")
        span = Span(file, number, comment.start() + 1, number, len(line.rstrip()) + 1)
        yield _AllowComment(span, tuple(_MS.findall(comment["codes"])), reason, frozenset(numbers))
