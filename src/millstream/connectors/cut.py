"""A stretch of event time by which rows of a sink are chosen: from a moment, included, to another, excluded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class Cut:
    """The rows whose `path` lies from `start` to before `end`, both aware; None leaves that side open.

    `path` is a column, or a column and a field of it: `("window", "start")`. Its type is a timestamp or a date.
    Rows without a value there lie in no cut but the one that is open on both sides.
    """

    path: tuple[str, ...] = ()
    start: datetime | None = None
    end: datetime | None = None

    @property
    def whole(self) -> bool:
        """Is every row in it?"""
        return self.start is None and self.end is None

    def sql(self) -> str:
        """As a condition in Spark's SQL; dates and times without a zone are of the session's."""
        column = ".".join(f"`{part.replace('`', '``')}`" for part in self.path)
        parts = [
            f"{column} {sign} TIMESTAMP '{_utc(moment)}Z'"
            for sign, moment in ((">=", self.start), ("<", self.end))
            if moment is not None
        ]
        return " AND ".join(parts) or "true"

    def before(self, moment: datetime) -> Cut:
        """As much of it as lies before a moment."""
        return Cut(self.path, self.start, moment if self.end is None else min(self.end, moment))

    def __str__(self) -> str:
        """`from 2026-01-01 00:00:00 to 2026-01-02 00:00:00 UTC`."""
        said = [
            f"{word} {_utc(moment)}"
            for word, moment in (("from", self.start), ("to", self.end))
            if moment is not None
        ]
        return f"{' '.join(said)} UTC" if said else "all of its rows"


def _utc(moment: datetime) -> str:
    """In UTC without a zone, to the microsecond where it has any."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
