"""A sink is partitioned by a column with a different value in nearly every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Deduplicate
from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Column, PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report unrounded times, and columns that the query itself uses as a unique key of its rows."""
    if facts is None:
        return
    unique_origins = {
        operator.keys[0].origins
        for operator in query.of(Deduplicate)
        if len(operator.keys) == 1 and operator.keys[0].origins
    }
    for number, entry in enumerate(facts.pipeline.queries[query.name].to):
        for field, names in entry.sink.named_columns().items():
            for name in names if field == "partition_by" else ():
                column = query.root.column(name)
                reason = (
                    None
                    if column is None
                    else _find_reason(column, column.is_copied and column.origins in unique_origins)
                )
                if column is None or reason is None:
                    continue
                is_time = column.type.startswith("timestamp")
                yield CODE.warning(
                    f"{field} creates a folder for each value of '{name}', {reason}",
                    facts.places.value("queries", query.name, "to", number, "sink", field),
                    why="each batch then writes one file for nearly every row, and every reader must list and "
                    "open all these files",
                    fix=f"partition by day: select CAST({name} AS DATE) AS day in the view, and partition_by: [day]"
                    if is_time
                    else f"partition by a column with few values, and keep '{name}' as a plain column",
                    query=query.name,
                )


def _find_reason(column: Column, is_unique: bool) -> str | None:
    if column.is_copied and column.type.startswith("timestamp"):
        return "an unrounded time"
    return "which is different in every row" if is_unique else None
