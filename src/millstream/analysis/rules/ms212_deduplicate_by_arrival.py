"""Deduplication by a time that each delivery has anew: repetitions pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import Deduplicate, Stability
from millstream.analysis.facts import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Column, PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)

# Columns that tell where a message lies: a source that gives them has a time of the message too.
_PLACE = {"partition", "offset"}


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Keys that are the clock, or the time at which the broker took the message.

    A time that the rows carry is right: whoever sends a row again sends it with the time it had.
    """
    for one in query.of(Deduplicate):
        for key in one.keys:
            if why := _clock(key) or _taken(one, key, facts):
                yield CODE.warning(
                    f"{eventtime.who(query, one)} tells repetitions by '{key.name}', which each delivery has anew",
                    next((v.span for v in key.volatile if v.span), None) or eventtime.place(query, one),
                    label="by arrival",
                    why=why,
                    fix="leave it out of the keys, and use dropDuplicatesWithinWatermark with a delay longer than "
                    "any repetition takes",
                    query=query.name,
                )


def _clock(key: Column) -> str:
    if any(volatile.stability in (Stability.BATCH, Stability.UNSTABLE) for volatile in key.volatile):
        return "it comes from the clock: a row that comes again in a later batch has another one"
    return ""


def _taken(one: Deduplicate, key: Column, facts: Facts | None) -> str:
    """Is it the time of the message, beside its value, and not one of the value's own?"""
    for source, column in key.origins:
        entry = facts.pipeline.sources.get(source) if facts else None
        read = next((read for read in eventtime.streams(one) if read.source == source), None)
        if entry is not None:
            beside = column in [str(kept) for kept in entry.keep]
        else:
            beside = read is not None and {found.name.lower() for found in read.columns} >= _PLACE
        if column.lower() == "timestamp" and beside and eventtime.is_time(key):
            return "the broker stamps a message when it takes it: one that is sent again has another time"
    return ""
