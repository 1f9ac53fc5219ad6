"""A function over groups of a stream gets only the rows of one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import BatchFunction
from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Check `groupBy(…).applyInPandas` and `applyInArrow`; functions of the map family have no groups to split."""
    for function in query.of(BatchFunction):
        if len(function.inputs) > 1 or not (function.keys or "Groups" in function.node):
            continue
        group_name = f"each '{function.keys[0].name}'" if function.keys else "the whole stream"
        yield CODE.error(
            f"{event_time.owner_label(query, function)} calls '{function.function}' only with the rows of "
            f"{group_name} in one batch, not with all of them",
            event_time.find_span(query, function),
            label="per batch",
            why="applyInPandas keeps no state between batches, so a group with rows in two batches has two "
            "partial results",
            fix="aggregate in SQL, or use transformWithState, which keeps the state of a group between batches",
            query=query.name,
        )
