"""Columns of a query have the same name, or names that differ only in case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Check the columns that each storing sink writes: Spark cannot refer to either of two such columns."""
    if facts is None:
        return
    names = [column.name for column in query.root.columns]
    for number, entry in enumerate(facts.pipeline.queries[query.name].to):
        if not entry.sink.stores_rows:
            continue
        stored_columns = entry.sink.takes(names)
        lower_names = [name.lower() for name in stored_columns]
        for name in dict.fromkeys(name for name in lower_names if lower_names.count(name) > 1):
            spellings = list(dict.fromkeys(stored for stored in stored_columns if stored.lower() == name))
            columns = (
                f"two columns '{spellings[0]}'"
                if len(spellings) == 1
                else f"columns {_join_names(spellings)}"
            )
            yield CODE.error(
                f"query '{query.name}' outputs {columns}, but {entry.sink.kind} accepts one column of that name",
                facts.places.key("queries", query.name, "to", number, "sink"),
                why="Spark ignores upper and lower case in column names, and a name must refer to only one column",
                fix="select each column by name, or rename one of them with AS",
                query=query.name,
            )


def _join_names(names: list[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
