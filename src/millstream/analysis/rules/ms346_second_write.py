"""A write in a function of batches that can be made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - its source alone
    """Writes without a mode, to a place that is the same for every batch, or for every attempt of one."""
    if query.trigger.once:
        return
    for sink in query.sinks:
        function = sink.function
        for write in function.writes if function else ():
            if write.no_replay and not write.once:
                yield CODE.warning(
                    f"query '{query.name}' ends with a batch that comes again: this write refuses what is there",
                    write.span,
                    label="has no mode",
                    why="Spark hands a batch over again when a crash came before its commit, and its place is then "
                    "made already, in whole or in part",
                    fix='replace what an earlier attempt left: .mode("overwrite")',
                    query=query.name,
                )
            elif write.once and function and not function.uses_batch_id:
                yield CODE.error(
                    f"query '{query.name}' ends with its second batch: this write refuses a place that is not empty",
                    write.span,
                    label="has no mode",
                    why="Spark's default mode of a write is errorifexists, and the first batch has made the place",
                    fix='say what is meant: .mode("append") adds the rows, .mode("overwrite") replaces all',
                    query=query.name,
                )
