"""Comments that allow a finding: `# millstream: allow MS201 — reason`, on its line or on the line above."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.analysis.facts import Code
from millstream.diagnostics.finding import Finding, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CODE = Code("MS091", "bad-allow")
_ALLOW = re.compile(r"(?:#|--)\s*millstream:\s*allow\b(?P<codes>[\sA-Z\d,]*)(?P<reason>.*)")
_MS = re.compile(r"\bMS\d{3}\b")
_COMMENT = re.compile(r"^\s*(?:#|--|$)")


@dataclass(frozen=True)
class _Allow:
    span: Span
    codes: tuple[str, ...]
    reason: str
    lines: frozenset[int]


def allowed(
    found: Sequence[Finding], texts: Mapping[str, str], codes: set[str], judged: set[str]
) -> list[Finding]:
    """The findings that no comment allows, and one for each comment that allows nothing or gives no reason.

    `codes` are those that can be allowed; of those in `judged`, all that could be found was looked for.
    """
    allows = [allow for file, text in texts.items() for allow in _read(file, text)]
    used: set[tuple[Span, str]] = set()
    kept = []
    for one in found:
        by = [a for a in allows if one.span and a.span.file == one.span.file and one.span.line in a.lines]
        by = [a for a in by if one.code in a.codes and one.code in codes]
        used.update((a.span, one.code) for a in by)
        if not any(a.reason for a in by):
            kept.append(one)
    for allow in allows:
        kept += _complaints(allow, used, codes, judged)
    return kept


def _complaints(
    allow: _Allow, used: set[tuple[Span, str]], codes: set[str], judged: set[str]
) -> Iterator[Finding]:
    if not allow.codes:
        yield CODE.error(
            "the comment allows no code", allow.span, fix="write 'millstream: allow MS201 — reason'"
        )
    elif not allow.reason:
        said = f"the comment allows {', '.join(allow.codes)} and gives no reason"
        fix = f"write 'millstream: allow {', '.join(allow.codes)} — reason'"
        yield CODE.error(said, allow.span, why="the next reader cannot tell whether it still holds", fix=fix)
    else:
        for code in allow.codes:
            if code not in codes:
                yield CODE.warning(
                    f"{code} cannot be allowed by a comment", allow.span, fix="remove the comment"
                )
            elif code in judged and (allow.span, code) not in used:
                said = f"the comment allows {code}, which is not found here"
                yield CODE.warning(said, allow.span, fix="remove the comment")


def _read(file: str, text: str) -> Iterator[_Allow]:
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        comment = _ALLOW.search(line)
        if not comment:
            continue
        # A comment that has its line for itself speaks of the next line that is none.
        here = {number}
        if _COMMENT.match(line):
            here |= {
                next((n for n in range(number + 1, len(lines) + 1) if not _COMMENT.match(lines[n - 1])), 0)
            }
        reason = comment["reason"].strip(" \t\u2014\u2013-:")
        span = Span(file, number, comment.start() + 1, number, len(line.rstrip()) + 1)
        yield _Allow(span, tuple(_MS.findall(comment["codes"])), reason, frozenset(here))
