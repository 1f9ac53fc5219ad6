"""Convert event times between ISO-8601 texts in UTC and seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime


def parse(text: str) -> float:
    """Convert an ISO-8601 text to seconds since 1970. Raises `ValueError` for another text."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def parse_or_none(text: object) -> float | None:
    """Convert a value to seconds since 1970, or None if it is not a time."""
    try:
        return parse(text) if isinstance(text, str) else None
    except ValueError:
        return None


def format_timestamp(moment: float) -> str:
    """Format a time in ISO-8601, UTC, to the millisecond."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
