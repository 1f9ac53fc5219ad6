"""Print findings for people: the position, the line with its mark, the reason and the fix."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Edit, Finding, Severity
from millstream.diagnostics.guarantee_table import format_guarantee_table
from millstream.diagnostics.lines import TextLines
from millstream.diagnostics.snippet import build_snippet, escape_control, mask_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}
_BLUE, _GREEN, _RED, _BOLD = "34", "32", "31", "1"


class Colours:
    """Colours a text if colour is on."""

    def __init__(self, *, color: bool) -> None:
        self.color = color

    def __call__(self, text: str, *codes: str) -> str:
        """Return the text between ANSI codes."""
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.color and text else text


def format_text(
    findings: Sequence[Finding],
    texts: Mapping[str, str],
    guarantees: Sequence[Mapping[str, Any]],
    *,
    color: bool,
) -> str:
    """Format all findings, the guarantees of the sinks, and the number of findings."""
    paint = Colours(color=color)
    lines = {name: TextLines(content) for name, content in texts.items()}
    parts = ["\n".join(_format_finding(finding, lines, paint)) for finding in findings]
    if guarantees:
        parts.append("\n".join(_format_guarantees(guarantees, paint)))
    if findings:
        parts.append(count_by_severity(findings))
    return "\n\n".join(parts) + "\n" if parts else ""


def count_by_severity(findings: Sequence[Finding]) -> str:
    """Count the findings of each severity: `2 errors, 1 warning`."""
    counts = Counter(finding.severity for finding in findings)
    labels = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    return ", ".join(
        f"{counts[severity]} {word}{'' if counts[severity] == 1 else 's'}"
        for severity, word in labels.items()
        if counts[severity]
    )


def _format_finding(finding: Finding, lines: Mapping[str, TextLines], paint: Colours) -> list[str]:
    """Format the lines of one finding."""
    color = _COLORS[finding.severity]
    output = [f"{paint(f'{finding.severity}[{finding.code}]', color, _BOLD)}: {_join_lines(finding.message)}"]
    changed_lines = max(len(finding.edit.insert), finding.edit.drop) if finding.edit else 0
    numbers = [
        finding.span.line if finding.span else 0,
        finding.edit.line + changed_lines if finding.edit else 0,
    ]
    gutter = max(2, len(str(max(numbers))))
    if finding.span:
        position = f"{finding.span.file}:{finding.span.line}:{finding.span.column}"
        output.append(f"{' ' * gutter}{paint('-->', _BLUE)} {escape_control(position)}")
        file_lines = lines.get(finding.span.file)
        marked_line = build_snippet(file_lines, finding.span) if file_lines else None
        if marked_line:
            bar = paint("|", _BLUE)
            label = f" {_join_lines(finding.label)}" if finding.label else ""
            output.append(f"{' ' * gutter} {bar}")
            output.append(
                f"{paint(str(finding.span.line).rjust(gutter), _BLUE)} {bar} {marked_line.text}".rstrip()
            )
            output.append(f"{' ' * gutter} {bar} {paint(marked_line.carets + label, color)}")
        elif finding.label:
            output.append(f"note: {_join_lines(finding.label)}")
    elif finding.label:
        output.append(f"note: {_join_lines(finding.label)}")
    if finding.why:
        output.append(f"why:  {escape_control(finding.why)}")
    if finding.fix:
        is_in_other_file = finding.edit and finding.span and finding.edit.file != finding.span.file
        output.append(
            f"fix:  {escape_control(finding.fix)}"
            + (f" ({escape_control(finding.edit.file)})" if is_in_other_file and finding.edit else "")
        )
    if finding.edit:
        output += _format_edit(finding.edit, lines.get(finding.edit.file), gutter, paint)
    output.append(f"see:  millstream explain {finding.code}")
    return output


def _format_edit(edit: Edit, file_lines: TextLines | None, gutter: int, paint: Colours) -> list[str]:
    """Format the deleted and the inserted lines, with their numbers before and after the edit."""
    deleted = [
        file_lines.line(edit.line + number) if file_lines else "…" for number in range(1, edit.drop + 1)
    ]
    output = []
    for sign, content, color in (("-", deleted, _RED), ("+", edit.insert, _GREEN)):
        for number, line in enumerate(content, edit.line + 1):
            output.append(
                f"{paint(f'{number:>{gutter}} {sign}', color)} {paint(escape_control(mask_secrets(line)), color)}"
            )
    return output


def _join_lines(words: str) -> str:
    """Put a text that may contain user input on one line, without secrets."""
    return escape_control(mask_secrets(" ".join(words.splitlines())))


def _format_guarantees(guarantees: Sequence[Mapping[str, Any]], paint: Colours) -> list[str]:
    """Format the guarantee of each sink, and its weakest link."""
    head, *rows = format_guarantee_table(guarantees)
    return [paint(head, _BLUE), *rows]
