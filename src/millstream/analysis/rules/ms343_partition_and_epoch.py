"""A foreach writer recognises repeated rows by partition and epoch."""

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
                f"query '{query.name}' recognises repeated rows by partition id and epoch id, which is not "
                f"reliable",
                sink.function.partition_epoch_use,
                why="when an epoch is repeated, its rows may be split into other partitions: then some rows that "
                "were never written are skipped, and others are written twice",
                fix="use foreachBatch, whose batch has the same rows when it is repeated, or recognise rows by a "
                "key",
                query=query.name,
            )
