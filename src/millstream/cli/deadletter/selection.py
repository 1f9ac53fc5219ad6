"""Which dead letters a command means."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from millstream.connectors.api.dead_letters import DeadLetter, DeadLetterStore


def find_dead_letter(store: DeadLetterStore, which: str) -> DeadLetter:
    """Return the record with that number, counted from the oldest, or at that place."""
    total = store.counts().total()
    if which.isdecimal() and 0 < int(which) <= total:
        return store.latest(total - int(which) + 1)[-1]
    for letter in store.all():
        if letter.topic is not None and which == f"{letter.topic}/{letter.partition}@{letter.offset}":
            return letter
    raise InvalidInput(
        f"there is no record {which}",
        f"give a number from 1 to {total}, or TOPIC/PARTITION@OFFSET" if total else "no record was rejected",
    )


def parse_time(text: str) -> datetime:
    """Parse a date or time; without a zone it is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"'{text}' is not a date or time", "write it as 2026-01-31 or 2026-01-31T12:00:00Z"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
