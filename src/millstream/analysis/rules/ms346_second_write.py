"""A write in a foreachBatch function succeeds only once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - its source alone
    """Report writes without a mode, to a target that is the same for every batch or for every attempt of one."""
    if query.trigger.once:
        return
    for sink in query.sinks:
        function = sink.function
        for write in function.writes if function else ():
            if write.cannot_replay and not write.refuses_existing:
                yield CODE.warning(
                    f"query '{query.name}' fails when a batch is repeated: this write refuses an existing target",
                    write.span,
                    label="has no mode",
                    why="after a crash before the commit of a batch, Spark repeats the batch, whose target then "
                    "already exists, completely or in part",
                    fix='overwrite what the earlier attempt wrote: .mode("overwrite")',
                    query=query.name,
                )
            elif write.ignores_existing and function and not function.uses_batch_id:
                yield CODE.warning(
                    f"query '{query.name}' writes only its first batch: this write ignores an existing target",
                    write.span,
                    label="ignores later batches",
                    why="the first batch creates the target, and the rows of all later batches are lost",
                    fix='set another mode: .mode("append") adds the rows, .mode("overwrite") replaces all',
                    query=query.name,
                )
            elif write.refuses_existing and function and not function.uses_batch_id:
                yield CODE.error(
                    f"query '{query.name}' fails in its second batch: this write refuses an existing target",
                    write.span,
                    label="has no mode",
                    why="the default mode of a write is errorifexists, and the first batch has created the target",
                    fix='set a mode: .mode("append") adds the rows, .mode("overwrite") replaces all',
                    query=query.name,
                )
