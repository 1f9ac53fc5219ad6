"""A column or filter differs each time a batch runs, so that sinks may contain different values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Stability
from millstream.analysis.query.replay_effects import (
    ReplayImpact,
    find_volatile_flows,
    list_sink_guarantees,
    shorten_paths,
)
from millstream.analysis.rule_context import Code
from millstream.analysis.sql_edits import replace_in_marked_text
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report nothing for a single exactly-once sink, which keeps the result of the first run."""
    guarantees = list_sink_guarantees(query, facts) or [
        sink.guarantee for sink in query.sinks if sink.guarantee
    ]
    if guarantees == [Guarantee.EXACTLY_ONCE]:
        return
    for flow in find_volatile_flows(query, Stability.UNSTABLE):
        if flow.impact not in (ReplayImpact.PAYLOAD, ReplayImpact.FILTER):
            continue
        is_clock = flow.volatile.function == "now"
        yield CODE.warning(
            f"query '{query.name}': {flow.volatile.text} goes into {shorten_paths(flow.into, facts)}, "
            "but it differs each time the batch runs",
            flow.span or query.span,
            label="nondeterministic",
            why="after a crash the batch runs again: "
            + (
                "a sink that already has the batch keeps the old value, the others get a new one"
                if len(guarantees) > 1
                else "the same row has another value"
                if flow.impact is ReplayImpact.PAYLOAD
                else "other rows are selected"
            ),
            fix="write 'current_timestamp()', which Spark keeps when it repeats a batch"
            if is_clock
            else "compute it from columns of the row, such as a hash of its key",
            edit=replace_in_marked_text(facts, flow.span, "now()", "current_timestamp()", safe=True)
            if is_clock
            else None,
            query=query.name,
        )
