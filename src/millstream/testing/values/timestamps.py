"""Parse and format timestamps of test files: ISO text, in UTC unless a time zone is given."""

from __future__ import annotations

from datetime import UTC, date, datetime


def parse_timestamp(value: object) -> datetime:
    """Convert text, a date or a datetime to a datetime with a time zone. Raises ValueError if it is invalid."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, str):
        raise ValueError("a time is text")
    text = value.strip().removesuffix(" UTC")
    # Python also parses `20260101` and week dates as timestamps; Spark does not.
    if len(text) < len("2026-01-01") or text[4:5] != "-" or text[7:8] != "-":
        raise ValueError("a time begins with its date")
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def parse_date(value: object) -> date:
    """Convert text or a date to a date. Raises ValueError if it is invalid."""
    if isinstance(value, datetime):
        raise ValueError("a date has no time of day")
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or len(value.strip()) != len("2026-01-01"):
        raise ValueError("a date is text like 2026-01-31")
    return date.fromisoformat(value.strip())


def format_timestamp(value: datetime) -> str:
    """Format a datetime for a test file: in UTC, without a time zone, with fractions only if not zero."""
    plain = (value.astimezone(UTC) if value.tzinfo else value).replace(tzinfo=None)
    return plain.isoformat(sep=" ", timespec="microseconds" if plain.microsecond else "seconds")
