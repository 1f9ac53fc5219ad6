"""Columns of a query that have one name, or names that differ in case alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """The columns that a sink takes which keeps rows: Spark can name neither of two such columns."""
    if facts is None:
        return
    names = [column.name for column in query.root.columns]
    for number, entry in enumerate(facts.pipeline.queries[query.name].to):
        if not entry.sink.keeps:
            continue
        taken = entry.sink.takes(names)
        low = [name.lower() for name in taken]
        for name in dict.fromkeys(name for name in low if low.count(name) > 1):
            spelled = list(dict.fromkeys(one for one in taken if one.lower() == name))
            what = f"two columns '{spelled[0]}'" if len(spelled) == 1 else f"columns {_listed(spelled)}"
            yield CODE.error(
                f"query '{query.name}' gives {what}, and {entry.sink.kind} takes one of that name",
                facts.places.key("queries", query.name, "to", number, "sink"),
                why="Spark compares names without case, and a name must stand for one column",
                fix="name each column that is meant, or give one of them another name with AS",
                query=query.name,
            )


def _listed(names: list[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
