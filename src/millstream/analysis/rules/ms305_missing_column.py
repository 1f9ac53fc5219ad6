"""The settings of a sink name a column that the query does not output."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.analysis.text_edits import replace_span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Edit, Finding, Span

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Compare the columns that each sink names with the columns of its query's plan."""
    if facts is None:
        return
    columns = list(dict.fromkeys(column.name for column in query.root.columns))
    for number, entry in enumerate(facts.pipeline.queries[query.name].to):
        known = set(columns) if entry.sink.is_case_sensitive else {name.lower() for name in columns}
        for field, names in entry.sink.named_columns().items():
            path: tuple[str | int, ...] = ("queries", query.name, "to", number, "sink", *field.split("."))
            span = facts.places.value(*path) if facts.places.has(*path) else facts.places.key(*path)
            field = field.rpartition(".")[2]
            for name in names:
                if (name if entry.sink.is_case_sensitive else name.lower()) in known:
                    continue
                suggestion = _suggest_column(name, columns)
                yield CODE.error(
                    f"{field} names column '{name}', which query '{query.name}' does not output",
                    span,
                    why=f"the query outputs {', '.join(columns)}",
                    fix=f"write '{suggestion}'"
                    if suggestion
                    else f"select '{name}' in the view, or correct {field}",
                    edit=_build_edit(facts, span, name, suggestion) if facts.places.has(*path) else None,
                    query=query.name,
                )


def _suggest_column(name: str, columns: Sequence[str]) -> str | None:
    """Return the column with the most similar name."""
    by_case = {column.lower(): column for column in reversed(columns)}
    matches = difflib.get_close_matches(name.lower(), by_case, 1, 0.7)
    return by_case[matches[0]] if matches else None


def _build_edit(facts: Facts, span: Span, name: str, suggestion: str | None) -> Edit | None:
    """Replace the name with the suggestion, if it occurs once in the setting's value."""
    lines = facts.places.texts.get(span.file, "").splitlines()
    if suggestion is None or span.line != span.end_line or span.line > len(lines):
        return None
    text = lines[span.line - 1][span.column - 1 : span.end_column - 1]
    return replace_span(facts.places, span, text.replace(name, suggestion)) if text.count(name) == 1 else None
