"""A sink divided into folders by a column that has another value in nearly every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Deduplicate
from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Column, PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Times as they came, and columns that by the query's own word tell each row from all others."""
    if facts is None:
        return
    alone = {
        one.keys[0].origins for one in query.of(Deduplicate) if len(one.keys) == 1 and one.keys[0].origins
    }
    for number, entry in enumerate(facts.pipeline.queries[query.name].to):
        for field, names in entry.sink.named().items():
            for name in names if field == "partition_by" else ():
                column = query.root.column(name)
                why = None if column is None else _why(column, column.copied and column.origins in alone)
                if column is None or why is None:
                    continue
                time = column.type.startswith("timestamp")
                yield CODE.warning(
                    f"{field} makes a folder for each value of '{name}', {why}",
                    facts.places.value("queries", query.name, "to", number, "sink", field),
                    why="each batch then writes a file for nearly every row, which every reader must list and open",
                    fix=f"divide by a day: CAST({name} AS DATE) AS day in the view, and partition_by: [day]"
                    if time
                    else f"divide by a column of few values, and keep '{name}' as a plain column",
                    query=query.name,
                )


def _why(column: Column, unique: bool) -> str | None:
    if column.copied and column.type.startswith("timestamp"):
        return "a time as it came"
    return "which tells each row from all others" if unique else None
