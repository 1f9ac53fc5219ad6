"""A function of batches that brings every row into the driver, from a source that bounds no batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Aggregate, Limit, Read
from millstream.analysis.facts import Code, Facts
from millstream.connectors.registry import sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - plan and source alone
    """Rows as they came: groups are few, and a batch that its source bounds is as large as was decided."""
    few = next(query.of(Aggregate), None) or next(query.of(Limit), None)
    unbounded = next((read for read in query.of(Read) if _unbounded(read)), None)
    if few is not None or unbounded is None:
        return
    for sink in query.sinks:
        for span in sink.function.collected if sink.function else ():
            yield CODE.warning(
                f"query '{query.name}' brings every row of a batch into the driver's memory",
                span,
                why=f"the first batch, and the first after a pause, holds all that {unbounded.format} has waiting",
                fix="bound a batch at the source, such as with maxOffsetsPerTrigger, or write from the executors",
                query=query.name,
            )
            return


def _unbounded(read: Read) -> bool:
    """A source that keeps what was not read yet, without a bound on one batch."""
    kind = sources().get(read.format)
    bounds = [
        key for key in read.options if key.lower().startswith("max") and key.lower().endswith("pertrigger")
    ]
    return kind is not None and kind.replayable and not bounds
