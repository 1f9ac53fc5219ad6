"""A result that is written anew with each batch and never stops growing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Aggregate
from millstream.analysis.facts import Code, Facts
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
# One window an hour is nine thousand rows a year.
_OFTEN = timedelta(hours=1)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - plans alone
    """Complete mode over windows of time: keys come again, windows never do."""
    if query.output_mode is not OutputMode.COMPLETE:
        return
    for aggregate in query.of(Aggregate):
        window = aggregate.window
        if window is None:
            continue
        step = window.slide or window.length
        if len(aggregate.keys) > 1 or (step is not None and step < _OFTEN):
            yield CODE.warning(
                f"query '{query.name}' writes every window since its start with each batch",
                query.mode_span or query.span,
                why="complete mode keeps all groups, whatever the watermark, and each window adds some for ever",
                fix="use output mode update with a key in the sink, or append; both need a watermark",
                query=query.name,
            )
            return
