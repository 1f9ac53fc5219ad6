"""A view of a batch that is looked for in another session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - its source alone
    """Names that the function itself gives to the batch."""
    for sink in query.sinks:
        for name, span in sink.function.outer_session if sink.function else ():
            yield CODE.error(
                f"view '{name}' of the batch is not known to this session",
                span,
                why="a batch belongs to a session of its own, a copy of the query's, and its temporary views are "
                "there alone",
                fix="ask the batch's own session: batch.sparkSession.sql(…)",
                query=query.name,
            )
