"""A writer of foreach that tells repeated rows by partition and epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - its source alone
    """A use of both numbers together outside of a log."""
    for sink in query.sinks:
        if sink.function and sink.function.by_partition:
            yield CODE.error(
                f"query '{query.name}' tells repeated rows by partition and epoch, which does not tell them",
                sink.function.by_partition,
                why="an epoch that runs again may be cut into other partitions: rows are then passed over that were "
                "never written, and written twice that were",
                fix="use foreachBatch, whose batch has the same rows each time, or a key of the row",
                query=query.name,
            )
