"""A function of batches that takes a failed write for a written one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - its source alone
    """Clauses that catch anything around a write and go on."""
    for sink in query.sinks:
        for span in sink.function.swallowed if sink.function else ():
            yield CODE.error(
                f"a batch of query '{query.name}' that could not be written is taken for written",
                span,
                label="goes on",
                why="Spark commits the batch when the function returns, and does not hand it over again: its rows "
                "are lost",
                fix="raise the exception again after it is logged, or catch only what leaves the batch written",
                query=query.name,
            )
