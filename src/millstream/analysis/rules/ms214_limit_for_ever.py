"""LIMIT on a stream: the first rows of the query's whole life, and then none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import Limit
from millstream.analysis.facts import Code
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Append mode: complete mode takes the limit of the whole result each time, and Spark refuses update."""
    if query.output_mode is not OutputMode.APPEND:
        return
    seen: set[int] = set()
    for one in query.of(Limit):
        # Spark cuts twice for one LIMIT: in each task, and then all together.
        if one.number in seen:
            continue
        seen |= {under.number for under in one.walk() if isinstance(under, Limit)}
        rows = f"first {one.rows} rows" if one.rows is not None else "first rows"
        yield CODE.warning(
            f"{eventtime.who(query, one)} gives the {rows} of the query's whole life, and then none",
            eventtime.place(query, one),
            label="limits here",
            why="the limit counts over all batches and restarts, as a table that is read to its end would have it",
            fix="limit what a batch reads in the source, such as 'max_offsets_per_trigger', or remove the LIMIT",
            query=query.name,
        )
