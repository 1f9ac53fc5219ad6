"""Convert findings, in the JSON of `check`, to diagnostics and text edits of the Language Server Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOURCE = "millstream"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


def to_diagnostic(finding: Mapping[str, Any], lines: Sequence[str]) -> types.Diagnostic:
    """Convert a finding in a file with these lines. Its edit is kept as `data`, for the quick fix."""
    parts = [finding["message"], *(f"{key}: {finding[key]}" for key in ("why", "fix") if finding[key])]
    return types.Diagnostic(
        range=types.Range(
            to_position(lines, finding["line"] or 1, finding["column"] or 1),
            to_position(lines, finding["end_line"] or 1, finding["end_column"] or 2),
        ),
        message="\n".join(parts),
        severity=_SEVERITIES[finding["severity"]],
        code=finding["code"],
        source=SOURCE,
        data={"edit": finding["edit"], "title": finding["fix"]} if finding["edit"] else None,
    )


def to_position(lines: Sequence[str], line: int, column: int) -> types.Position:
    """Convert a line and a column, both from 1, to a position, whose characters are units of UTF-16."""
    text = lines[line - 1] if line <= len(lines) else ""
    before = text[: column - 1]
    return types.Position(line - 1, len(before.encode("utf-16-le")) // 2)


def to_text_edit(edit: Mapping[str, Any], lines: Sequence[str]) -> types.TextEdit:
    """Convert an edit of whole lines. The last of a file's `lines` is empty if the file ends with a line ending."""
    first, last = edit["line"], edit["line"] + edit["drop"]
    new_lines = list(edit["insert"])
    if last < len(lines):
        text = "".join(f"{line}\n" for line in new_lines)
        return types.TextEdit(types.Range(types.Position(first, 0), types.Position(last, 0)), text)
    end = to_position(lines, len(lines), len(lines[-1]) + 1) if lines else types.Position(0, 0)
    if first == 0 or not lines:
        return types.TextEdit(types.Range(types.Position(0, 0), end), "\n".join(new_lines))
    start = to_position(lines, first, len(lines[first - 1]) + 1)
    return types.TextEdit(types.Range(start, end), "".join(f"\n{line}" for line in new_lines))


def to_code_action(uri: str, diagnostic: types.Diagnostic, lines: Sequence[str]) -> types.CodeAction | None:
    """Return the quick fix of a diagnostic; None if its finding has no edit. A safe one is preferred."""
    data = diagnostic.data
    if not isinstance(data, dict) or not data.get("edit"):
        return None
    edit = data["edit"]
    title = data.get("title") or f"fix {diagnostic.code}"
    return types.CodeAction(
        title=title if edit["safe"] else f"{title} (may change results)",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        is_preferred=bool(edit["safe"]),
        edit=types.WorkspaceEdit(changes={uri: [to_text_edit(edit, lines)]}),
    )
