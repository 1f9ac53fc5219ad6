"""Times as a test file writes them: text in ISO form, in UTC unless a zone is given."""

from __future__ import annotations

from datetime import UTC, date, datetime


def moment(value: object) -> datetime:
    """The moment that a text, date or time means, with its zone. Raises ValueError when it is none."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, str):
        raise ValueError("a time is text")
    text = value.strip().removesuffix(" UTC")
    # Python takes `20260101` and week dates for times too; Spark does not.
    if len(text) < len("2026-01-01") or text[4:5] != "-" or text[7:8] != "-":
        raise ValueError("a time begins with its date")
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def day(value: object) -> date:
    """The day that a text or date means. Raises ValueError when it is none."""
    if isinstance(value, datetime):
        raise ValueError("a date has no time of day")
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or len(value.strip()) != len("2026-01-01"):
        raise ValueError("a date is text like 2026-01-31")
    return date.fromisoformat(value.strip())


def written(value: datetime) -> str:
    """A moment as a test file writes it: in UTC, without a zone, fractions only where there are some."""
    plain = (value.astimezone(UTC) if value.tzinfo else value).replace(tzinfo=None)
    return plain.isoformat(sep=" ", timespec="microseconds" if plain.microsecond else "seconds")
