"""A value that each run of a batch draws anew, in a key, in state, or in what decides where a row goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.amend import replaced
from millstream.analysis.dataflow import Stability
from millstream.analysis.facts import Code
from millstream.analysis.replay import Fate, counts_on_replay, flows, said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """An error where a sink promises that a batch run again changes nothing; otherwise a warning.

    A value that only decides where a row lies, such as its partition, is a warning: the row is there once.
    """
    for flow in flows(query, Stability.UNSTABLE):
        if flow.fate not in _WHY:
            continue
        broken = flow.fate is not Fate.ROUTE and counts_on_replay(query, facts)
        tell = CODE.error if broken else CODE.warning
        clock = flow.volatile.function == "now"
        yield tell(
            f"query '{query.name}': {flow.volatile.text} goes into {said(flow.into, facts)}, "
            "and each run draws it anew",
            flow.span or query.span,
            label="drawn anew",
            why=_WHY[flow.fate],
            fix="write 'current_timestamp()', which a batch that runs again keeps"
            if clock
            else "make it from what the row carries, such as 'sha2(concat_ws('|', topic, partition, offset), 256)'",
            edit=replaced(facts, flow.span, "now()", "current_timestamp()", safe=True) if clock else None,
            query=query.name,
        )


_WHY = {
    Fate.STATE: "after a crash the batch runs again: its state then differs from what the sink was given before",
    Fate.KEY: "after a crash the batch runs again: the same rows have other keys and are there twice",
    Fate.ROUTE: "after a crash the batch runs again: the same rows go elsewhere",
}
