"""A deduplication uses a time that changes when a message is sent again, so that no duplicate is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Deduplicate, Stability
from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Column, PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)

# Columns with the position of a message: a source that has them also has a timestamp per message.
_POSITION_COLUMNS = {"partition", "offset"}


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Check keys that are the clock, or the time at which the broker received the message.

    A time that the rows carry is correct: a producer that resends a row sends the same time.
    """
    for operator in query.of(Deduplicate):
        for key in operator.keys:
            if reason := _find_clock(operator, key) or _find_broker_time(operator, key, facts):
                yield CODE.warning(
                    f"{event_time.owner_label(query, operator)} deduplicates by '{key.name}', which differs for each "
                    "delivery",
                    next((volatile.span for volatile in key.volatile if volatile.span), None)
                    or event_time.find_span(query, operator),
                    label="by arrival",
                    why=reason,
                    fix="remove this column from the keys, and use dropDuplicatesWithinWatermark with a delay "
                    "that is longer than the time within which duplicates arrive",
                    query=query.name,
                )


def _find_clock(operator: Deduplicate, key: Column) -> str:
    columns = operator.inputs[0].columns if operator.inputs else ()
    # What all columns have decides only whether a row is there, such as a filter by the clock.
    of_rows = set.intersection(*(set(column.volatile) for column in columns)) if len(columns) > 1 else set()
    own = (volatile for volatile in key.volatile if volatile not in of_rows)
    if any(volatile.stability in (Stability.BATCH, Stability.UNSTABLE) for volatile in own):
        return (
            "its value is the time at which the batch runs, so a duplicate in a later batch has another value"
        )
    return ""


def _find_broker_time(operator: Deduplicate, key: Column, facts: Facts | None) -> str:
    """Return the reason if the key is the broker's timestamp of the message, not a time in its value; else empty."""
    for source, column in key.origins:
        entry = facts.pipeline.sources.get(source) if facts else None
        read = next((read for read in event_time.list_streams(operator) if read.source == source), None)
        if entry is not None:
            is_broker_time = column in [str(kept_column) for kept_column in entry.keep]
        else:
            types = {each.name.lower(): each.type for each in read.columns} if read else {}
            # The broker's time is a timestamp. A number is a field of the message.
            is_broker_time = types.keys() >= _POSITION_COLUMNS and types.get("timestamp") == "timestamp"
        if column.lower() == "timestamp" and is_broker_time and event_time.is_time(key):
            return (
                "the broker sets this time when it receives a message, so a message that is sent again has "
                "another time"
            )
    return ""
