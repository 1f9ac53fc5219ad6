"""A foreach writer that recognises repeated rows by partition and epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - its source alone
    """Report a use of both numbers together outside a log."""
    for sink in query.sinks:
        if sink.function and sink.function.partition_epoch_use:
            yield CODE.error(
                f"query '{query.name}' recognises repeated rows by partition and epoch, which is not reliable",
                sink.function.partition_epoch_use,
                why="a repeated epoch may be split into other partitions: rows are then skipped that were "
                "never written, and others are written twice",
                fix="use foreachBatch, whose batch has the same rows each time, or a key of the row",
                query=query.name,
            )
