"""What a person asks of a backfill, and how moments are written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from millstream.diagnostics.failure import WrongUse


@dataclass(frozen=True)
class Wish:
    """A range of event time and what is to be done with its rows. `start` is included, `end` is not."""

    start: datetime | None = None
    end: datetime | None = None
    column: str | None = None
    """The column, or column and field, that tells a row's time; found in the plan unless given."""
    into: str | None = None
    """Another table, folder or topic, instead of the query's own."""
    sink: str | None = None
    """The kind of the sink, for a query with several."""
    replace: bool = False
    """Take away the rows of the range that the answer has not."""
    compare: bool = False
    """Write nothing, and tell every difference."""
    dry: bool = False
    """Write nothing, and tell what would be written."""
    accept_gap: bool = False
    """Go on although the sources have no longer all that the range needs."""
    limit: int = 20
    """So many differences of each kind are told."""

    @property
    def writes(self) -> bool:
        """Is anything to be written?"""
        return not (self.compare or self.dry)


def moment(text: str) -> datetime:
    """A date or a time; without a zone it is UTC. Raises `WrongUse`."""
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise WrongUse(
            f"'{text}' is no date and no time",
            "write 2026-01-31, '2026-01-31 12:00' (UTC) or 2026-01-31T12:00:00+02:00",
        ) from None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def ordered(start: datetime | None, end: datetime | None) -> None:
    """Raises `WrongUse` for a range in which no moment lies."""
    if start is not None and end is not None and start >= end:
        raise WrongUse(
            f"the range ends at {end.isoformat(' ')}, which is not after its beginning {start.isoformat(' ')}",
            "--from is included and --to is not: name a later --to",
        )
