"""A temporary view of a batch is queried in another session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - its source alone
    """Check the view names that the function itself creates."""
    for sink in query.sinks:
        for name, span in sink.function.outer_session_views if sink.function else ():
            yield CODE.error(
                f"view '{name}' of the batch does not exist in this session",
                span,
                why="the DataFrame of a batch belongs to a clone of the session, and its temporary views exist "
                "only in the clone",
                fix="use the session of the batch: batch.sparkSession.sql(…)",
                query=query.name,
            )
