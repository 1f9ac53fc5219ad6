"""Bytes from a source are written as text to a sink which does not accept every character."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.throwing_expressions import find_exposed
from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report `CAST(value AS STRING)` as a result column, if a sink refuses some characters."""
    if facts is None:
        return
    refusing_sinks = [
        entry.sink for entry in facts.pipeline.queries[query.name].to if entry.sink.refuses_text is not None
    ]
    if not refusing_sinks:
        return
    names = {column.name.lower() for column in query.root.columns}
    for candidate in find_exposed(query, facts):
        call = candidate.expression
        if (
            call.function != "alias"
            or not call.inputs
            or call.text.rpartition(" ")[2].strip("`").lower() not in names
        ):
            continue
        cast = call.inputs[0]
        bytes_column = cast.inputs[0].column if cast.function == "cast" and cast.inputs else None
        if (
            bytes_column is None
            or cast.type != "string"
            or bytes_column.type != "binary"
            or not candidate.is_unchecked(bytes_column)
        ):
            continue
        sink = refusing_sinks[0]
        yield CODE.warning(
            f"{candidate.owner} passes '{bytes_column.name}' as text to {sink.describe()}, which refuses "
            f"{sink.refuses_text}",
            cast.span or candidate.operator.span,
            why="the batch with this row fails again after each restart, so no later row is ever written",
            fix=f"remove this character in the view: replace(CAST({bytes_column.name} AS STRING), chr(0), '')",
            query=query.name,
        )
