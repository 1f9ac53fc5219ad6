"""A range of event time that selects rows of a sink, from an inclusive start to an exclusive end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from millstream.connectors.api.ddl import quote_name


@dataclass(frozen=True)
class EventTimeRange:
    """The rows with `path` from `start` to before `end`, both with a time zone; None leaves a side open.

    `path` is a column, or a column and a field of it: `("window", "start")`. Its type is a timestamp or a date. Rows
    without a value there are only in the range that is open on both sides.
    """

    path: tuple[str, ...] = ()
    start: datetime | None = None
    end: datetime | None = None

    @property
    def is_unbounded(self) -> bool:
        """Whether the range contains every row."""
        return self.start is None and self.end is None

    def sql(self) -> str:
        """Return the condition in Spark SQL; dates and times without a zone are in the session's time zone."""
        column = ".".join(quote_name(name) for name in self.path)
        conditions = [
            f"{column} {operator} TIMESTAMP '{_utc(limit)}Z'"
            for operator, limit in ((">=", self.start), ("<", self.end))
            if limit is not None
        ]
        return " AND ".join(conditions) or "true"

    def before(self, moment: datetime) -> EventTimeRange:
        """Return the part of the range before a time."""
        return EventTimeRange(self.path, self.start, moment if self.end is None else min(self.end, moment))

    def __str__(self) -> str:
        """Format as `from 2026-01-01 00:00:00 to 2026-01-02 00:00:00 UTC`."""
        limits = [
            f"{word} {_utc(limit)}"
            for word, limit in (("from", self.start), ("to", self.end))
            if limit is not None
        ]
        return f"{' '.join(limits)} UTC" if limits else "all of its rows"


def _utc(moment: datetime) -> str:
    """Format in UTC without a zone, with microseconds if there are any."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
