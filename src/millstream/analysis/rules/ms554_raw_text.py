"""Bytes from outside that go as text, as they are, into a sink that does not take every text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.exposed import exposed
from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """`CAST(value AS STRING)` as a column of the result, before a sink that refuses some characters."""
    if facts is None:
        return
    refusing = [
        entry.sink for entry in facts.pipeline.queries[query.name].to if entry.sink.refuses_text is not None
    ]
    if not refusing:
        return
    names = {column.name.lower() for column in query.root.columns}
    for one in exposed(query, facts):
        call = one.expression
        if (
            call.function != "alias"
            or not call.inputs
            or call.text.rpartition(" ")[2].strip("`").lower() not in names
        ):
            continue
        cast = call.inputs[0]
        bytes_ = cast.inputs[0].column if cast.function == "cast" and cast.inputs else None
        if bytes_ is None or cast.type != "string" or bytes_.type != "binary" or not one.unchecked(bytes_):
            continue
        sink = refusing[0]
        yield CODE.warning(
            f"{one.owner} hands '{bytes_.name}' as text to {sink.describe()}, which refuses {sink.refuses_text}",
            cast.span or one.operator.span,
            why="the batch with that row fails at each attempt, and no later row is ever written",
            fix=f"take it out: replace(CAST({bytes_.name} AS STRING), chr(0), '')",
            query=query.name,
        )
