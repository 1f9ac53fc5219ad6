"""Findings for people: the place, the line with its mark, the reason and the cure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Edit, Finding, Severity
from millstream.diagnostics.lines import Lines
from millstream.diagnostics.promised import table
from millstream.diagnostics.snippet import mask, printable, snippet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}
_QUIET, _GOOD, _GONE, _BOLD = "34", "32", "31", "1"


class Paint:
    """Colours a text, or leaves it as it is."""

    def __init__(self, *, color: bool) -> None:
        self.color = color

    def __call__(self, text: str, *codes: str) -> str:
        """The text between ANSI codes."""
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.color and text else text


def text(
    findings: Sequence[Finding],
    texts: Mapping[str, str],
    guarantees: Sequence[Mapping[str, Any]],
    *,
    color: bool,
) -> str:
    """All findings, one below the other, the guarantees of the sinks, and how many findings there are."""
    paint = Paint(color=color)
    lines = {name: Lines(content) for name, content in texts.items()}
    parts = ["\n".join(_finding(found, lines, paint)) for found in findings]
    if guarantees:
        parts.append("\n".join(_guarantees(guarantees, paint)))
    if findings:
        parts.append(summary(findings))
    return "\n\n".join(parts) + "\n" if parts else ""


def summary(findings: Sequence[Finding]) -> str:
    """How many there are of each severity: `2 errors, 1 warning`."""
    counts = Counter(found.severity for found in findings)
    words = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    return ", ".join(
        f"{counts[severity]} {word}{'' if counts[severity] == 1 else 's'}"
        for severity, word in words.items()
        if counts[severity]
    )


def _finding(found: Finding, lines: Mapping[str, Lines], paint: Paint) -> list[str]:
    """The lines of one finding."""
    tone = _COLORS[found.severity]
    out = [f"{paint(f'{found.severity}[{found.code}]', tone, _BOLD)}: {_line(found.message)}"]
    changed = max(len(found.edit.insert), found.edit.drop) if found.edit else 0
    numbers = [found.span.line if found.span else 0, found.edit.line + changed if found.edit else 0]
    gutter = max(2, len(str(max(numbers))))
    if found.span:
        place = f"{found.span.file}:{found.span.line}:{found.span.column}"
        out.append(f"{' ' * gutter}{paint('-->', _QUIET)} {printable(place)}")
        known = lines.get(found.span.file)
        shown = snippet(known, found.span) if known else None
        if shown:
            bar = paint("|", _QUIET)
            label = f" {_line(found.label)}" if found.label else ""
            out.append(f"{' ' * gutter} {bar}")
            out.append(f"{paint(str(found.span.line).rjust(gutter), _QUIET)} {bar} {shown.text}".rstrip())
            out.append(f"{' ' * gutter} {bar} {paint(shown.marks + label, tone)}")
        elif found.label:
            out.append(f"note: {_line(found.label)}")
    elif found.label:
        out.append(f"note: {_line(found.label)}")
    if found.why:
        out.append(f"why:  {printable(found.why)}")
    if found.fix:
        elsewhere = found.edit and found.span and found.edit.file != found.span.file
        out.append(
            f"fix:  {printable(found.fix)}"
            + (f" ({printable(found.edit.file)})" if elsewhere and found.edit else "")
        )
    if found.edit:
        out += _edit(found.edit, lines.get(found.edit.file), gutter, paint)
    out.append(f"see:  millstream explain {found.code}")
    return out


def _edit(edit: Edit, known: Lines | None, gutter: int, paint: Paint) -> list[str]:
    """The lines that go and those that come, each with its number before or after."""
    gone = [known.line(edit.line + number) if known else "…" for number in range(1, edit.drop + 1)]
    out = []
    for sign, content, tone in (("-", gone, _GONE), ("+", edit.insert, _GOOD)):
        for number, line in enumerate(content, edit.line + 1):
            out.append(f"{paint(f'{number:>{gutter}} {sign}', tone)} {paint(printable(mask(line)), tone)}")
    return out


def _line(words: str) -> str:
    """Words that may hold what a user wrote, on one line and without secrets."""
    return printable(mask(" ".join(words.splitlines())))


def _guarantees(guarantees: Sequence[Mapping[str, Any]], paint: Paint) -> list[str]:
    """What each sink promises, and what weakens it."""
    head, *rows = table(guarantees)
    return [paint(head, _QUIET), *rows]
