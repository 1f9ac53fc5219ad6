"""The rows of two cogrouped streams are combined only within one batch."""

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
    """Check `cogroup(…).applyInPandas` with a stream on either side."""
    for function in query.of(BatchFunction):
        if len(function.inputs) < 2:
            continue
        are_both_streams = all(side.is_streaming for side in function.inputs)
        yield CODE.error(
            f"{event_time.owner_label(query, function)} calls '{function.function}' only with the groups of one "
            f"batch",
            event_time.find_span(query, function),
            label="per batch",
            why="matching rows of two streams are combined only if they are in the same batch"
            if are_both_streams
            else "each batch is combined with the whole static table, so the function is also called for "
            "keys of which the batch has no row",
            fix="join the streams on their key and a time bound"
            if are_both_streams
            else "join the stream with the table",
            query=query.name,
        )
