"""Times of events: texts in UTC on one side, seconds since 1970 on the other."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds(text: str) -> float:
    """Seconds since 1970 of a time in ISO-8601. Raises `ValueError` for another text."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def perhaps(text: object) -> float | None:
    """Seconds since 1970, or None for what is no time."""
    try:
        return seconds(text) if isinstance(text, str) else None
    except ValueError:
        return None


def text(moment: float) -> str:
    """A time in ISO-8601, UTC, to the millisecond."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
