"""Two streams grouped together that meet only within one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import BatchFunction
from millstream.analysis.facts import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """`cogroup(…).applyInPandas` with a stream on either side."""
    for one in query.of(BatchFunction):
        if len(one.inputs) < 2:
            continue
        both = all(side.streaming for side in one.inputs)
        yield CODE.error(
            f"{eventtime.who(query, one)} calls '{one.function}' with the groups of one batch",
            eventtime.place(query, one),
            label="per batch",
            why="rows of two streams that belong together meet only when the same batch brings both"
            if both
            else "each batch meets the whole static table, with empty groups wherever the batch brings no row",
            fix="join the streams on their key and a bound in time"
            if both
            else "join the stream with the table",
            query=query.name,
        )
