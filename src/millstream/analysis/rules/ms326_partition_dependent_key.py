"""A key contains a partition number, which changes with how Spark splits rows into tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Stability
from millstream.analysis.query.replay_effects import ReplayImpact, find_volatile_flows, shorten_paths
from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)

# The file name of a row does not depend on the split into tasks; the block does.
_CUT = frozenset({"spark_partition_id", "input_file_block_start", "input_file_block_length"})


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Check state, sink keys and routing. In a plain column the number does no harm."""
    for flow in find_volatile_flows(query, Stability.PARTITION):
        if flow.volatile.function not in _CUT or flow.impact not in (
            ReplayImpact.STATE,
            ReplayImpact.KEY,
            ReplayImpact.ROUTE,
        ):
            continue
        yield CODE.warning(
            f"query '{query.name}': {flow.volatile.text} goes into {shorten_paths(flow.into, facts)}",
            flow.span or query.span,
            label="a partition number",
            why="Spark decides how to split a batch into tasks, so when the batch is repeated the same row may "
            "get another number",
            fix="use a column of the row, or a hash of one: 'pmod(hash(id), 8)'",
            query=query.name,
        )
