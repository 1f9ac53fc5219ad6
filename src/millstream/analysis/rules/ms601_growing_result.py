"""A result that each batch writes again and that grows without bound."""

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
            f"query '{query.name}' writes every window since its start with each batch",
            query.mode_span or query.span,
            why="complete mode keeps all groups, whatever the watermark, so each window adds groups forever",
            fix="use output mode update with a key in the sink, or append; both need a watermark",
            query=query.name,
        )
