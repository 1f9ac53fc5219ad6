"""The number of a task in a key: it changes with how rows are cut into tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Stability
from millstream.analysis.facts import Code
from millstream.analysis.replay import Fate, flows, said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)

# A file's name stays with its rows however they are cut; its blocks do not.
_CUT = frozenset({"spark_partition_id", "input_file_block_start", "input_file_block_length"})


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """State, keys of sinks and places of rows; as a column for a look it harms nobody."""
    for flow in flows(query, Stability.PARTITION):
        if flow.volatile.function not in _CUT or flow.fate not in (Fate.STATE, Fate.KEY, Fate.ROUTE):
            continue
        yield CODE.warning(
            f"query '{query.name}': {flow.volatile.text} goes into {said(flow.into, facts)}",
            flow.span or query.span,
            label="a task's number",
            why="Spark cuts a batch into tasks as it sees fit: another time the same row has another number",
            fix="use a column of the row, or a hash of one: 'pmod(hash(id), 8)'",
            query=query.name,
        )
