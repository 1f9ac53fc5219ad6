"""A sink whose settings name a column that the query does not give."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from millstream.analysis.edits import swap
from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Edit, Finding, Span

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """The columns that each sink names, against those that its query's plan gives."""
    if facts is None:
        return
    come = list(dict.fromkeys(column.name for column in query.root.columns))
    for number, entry in enumerate(facts.pipeline.queries[query.name].to):
        held = set(come) if entry.sink.case_counts else {name.lower() for name in come}
        for field, names in entry.sink.named().items():
            path: tuple[str | int, ...] = ("queries", query.name, "to", number, "sink", *field.split("."))
            span = facts.places.value(*path) if facts.places.has(*path) else facts.places.key(*path)
            field = field.rpartition(".")[2]
            for name in names:
                if (name if entry.sink.case_counts else name.lower()) in held:
                    continue
                near = _near(name, come)
                yield CODE.error(
                    f"{field} names column '{name}', which query '{query.name}' does not give",
                    span,
                    why=f"it gives {', '.join(come)}",
                    fix=f"write '{near}'" if near else f"select '{name}' in the view, or correct {field}",
                    edit=_edit(facts, span, name, near) if facts.places.has(*path) else None,
                    query=query.name,
                )


def _near(name: str, come: Sequence[str]) -> str | None:
    """The column that was probably meant."""
    by_case = {one.lower(): one for one in reversed(come)}
    close = difflib.get_close_matches(name.lower(), by_case, 1, 0.7)
    return by_case[close[0]] if close else None


def _edit(facts: Facts, span: Span, name: str, near: str | None) -> Edit | None:
    """The near name in the place of the other, where that stands once on the setting's line."""
    lines = facts.places.texts.get(span.file, "").splitlines()
    if near is None or span.line != span.end_line or span.line > len(lines):
        return None
    text = lines[span.line - 1][span.column - 1 : span.end_column - 1]
    return swap(facts.places, span, text.replace(name, near)) if text.count(name) == 1 else None
