"""A value that differs each time a batch runs is used in a key, in state, or to decide where a row goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Stability
from millstream.analysis.query.replay_effects import (
    ReplayImpact,
    find_volatile_flows,
    guarantees_replay,
    shorten_paths,
)
from millstream.analysis.rule_context import Code
from millstream.analysis.sql_edits import replace_in_marked_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report an error if a sink guarantees that a repeated batch changes nothing; otherwise a warning.

    A value that only decides where a row is stored, such as its partition, is a warning: the row is stored once.
    """
    for flow in find_volatile_flows(query, Stability.UNSTABLE):
        if flow.impact not in _REASONS:
            continue
        is_broken = flow.impact is not ReplayImpact.ROUTE and guarantees_replay(query, facts)
        report = CODE.error if is_broken else CODE.warning
        is_clock = flow.volatile.function == "now"
        yield report(
            f"query '{query.name}': {flow.volatile.text} goes into {shorten_paths(flow.into, facts)}, "
            "but it differs each time the batch runs",
            flow.span or query.span,
            label="nondeterministic",
            why=_REASONS[flow.impact],
            fix="write 'current_timestamp()', which Spark keeps when it repeats a batch"
            if is_clock
            else "compute it from columns of the row, such as 'sha2(concat_ws('|', topic, partition, offset), 256)'",
            edit=replace_in_marked_text(facts, flow.span, "now()", "current_timestamp()", safe=True)
            if is_clock
            else None,
            query=query.name,
        )


_REASONS = {
    ReplayImpact.STATE: (
        "after a crash the batch runs again: its state then differs from the rows that the sink already has"
    ),
    ReplayImpact.KEY: "after a crash the batch runs again: the same rows get other keys and are stored twice",
    ReplayImpact.ROUTE: "after a crash the batch runs again, and the same rows are written to a different place",
}
