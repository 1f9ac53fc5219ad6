"""Each batch writes a result as a whole, and the result grows without limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Aggregate
from millstream.analysis.rule_context import Code, Facts
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - plans alone
    """Report complete mode over time windows: keys repeat, windows do not."""
    if query.output_mode is not OutputMode.COMPLETE:
        return
    if any(event_time.outputs_every_window(aggregate) for aggregate in query.of(Aggregate)):
        yield CODE.warning(
            f"with each batch, query '{query.name}' writes all windows since its first start",
            query.mode_span or query.span,
            why="complete mode keeps all groups and ignores the watermark, so every new window adds groups that "
            "are never removed",
            fix="use output mode update with a key in the sink, or output mode append; both need a watermark",
            query=query.name,
        )
