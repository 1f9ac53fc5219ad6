"""A foreachBatch function hides a failed write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - its source alone
    """Report `except` clauses around a write that continue after any exception."""
    for sink in query.sinks:
        for span in sink.function.swallowing_clauses if sink.function else ():
            yield CODE.error(
                f"a batch of query '{query.name}' whose write fails is committed as if it were written",
                span,
                label="continues",
                why="Spark commits the batch when the function returns, and never repeats it, so its rows are lost",
                fix="re-raise the exception after logging it, or catch only exceptions that do not prevent the "
                "write of the batch",
                query=query.name,
            )
