"""A column, or a choice of rows, that each run of a batch draws anew, where sinks may then disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.amend import replaced
from millstream.analysis.dataflow import Stability
from millstream.analysis.facts import Code
from millstream.analysis.replay import Fate, flows, kept_by, said
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """A single sink that takes each batch exactly once keeps what the first run gave: nothing shows."""
    kept = kept_by(query, facts)
    if kept == [Guarantee.EXACTLY_ONCE]:
        return
    for flow in flows(query, Stability.UNSTABLE):
        if flow.fate not in (Fate.PAYLOAD, Fate.FILTER):
            continue
        clock = flow.volatile.function == "now"
        yield CODE.warning(
            f"query '{query.name}': {flow.volatile.text} goes into {said(flow.into, facts)}, "
            "and each run draws it anew",
            flow.span or query.span,
            label="drawn anew",
            why="after a crash the batch runs again: "
            + (
                "a sink that has it keeps the old value, the others get a new one"
                if len(kept) > 1
                else "the same row comes with another value"
                if flow.fate is Fate.PAYLOAD
                else "other rows are chosen"
            ),
            fix="write 'current_timestamp()', which a batch that runs again keeps"
            if clock
            else "make it from what the row carries, such as a hash of its key",
            edit=replaced(facts, flow.span, "now()", "current_timestamp()", safe=True) if clock else None,
            query=query.name,
        )
