"""A foreachBatch function collects every row in the driver, from a source without a batch limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Aggregate, Limit, Read
from millstream.analysis.rule_context import Code, Facts
from millstream.connectors.registry import sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - plan and source alone
    """Check plain rows of sources without a limit: groups and limited batches are small."""
    reducing = next(query.of(Aggregate), None) or next(query.of(Limit), None)
    unbounded = next((read for read in query.of(Read) if _is_unbounded(read)), None)
    if reducing is not None or unbounded is None:
        return
    for sink in query.sinks:
        for span in sink.function.collected if sink.function else ():
            yield CODE.warning(
                f"query '{query.name}' collects every row of a batch in the driver's memory",
                span,
                why=f"the first batch, and the first batch after a pause, contains everything in "
                f"{unbounded.format} that was not read yet",
                fix="limit the batch size at the source, for example with maxOffsetsPerTrigger, or write from the "
                "executors",
                query=query.name,
            )
            return


def _is_unbounded(read: Read) -> bool:
    """Return whether a source keeps unread records and has no limit on one batch."""
    kind = sources().get(read.format)
    bounds = [
        key for key in read.options if key.lower().startswith("max") and key.lower().endswith("pertrigger")
    ]
    return kind is not None and kind.is_replayable and not bounds
