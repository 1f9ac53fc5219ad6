"""Options of a backfill, and the parsing of its times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from millstream.diagnostics.failure import InvalidInput


@dataclass(frozen=True)
class PastRows:
    """The rows that replace all rows of a sink whose query has a new checkpoint. The query writes all others itself.

    These are the rows of windows that are closed at `watermark`; all rows if it is None; and none with `is_empty`.
    """

    watermark: datetime | None = None
    is_empty: bool = False


@dataclass(frozen=True)
class BackfillOptions:
    """A range of event time and what to do with its rows. `start` is included, `end` is not."""

    start: datetime | None = None
    end: datetime | None = None
    column: str | None = None
    """The column, or column and field, that contains a row's event time; by default it is found in the plan."""
    into: str | None = None
    """Another table, folder or topic to write to, instead of the query's own."""
    sink: str | None = None
    """The kind of the sink, for a query with several sinks."""
    replace: bool = False
    """Delete rows in the range that the recomputed result does not contain."""
    compare: bool = False
    """Write nothing, and report every difference."""
    is_dry_run: bool = False
    """Write nothing, and report what would be written."""
    accept_gap: bool = False
    """Continue although the sources no longer have all input of the range."""
    limit: int = 20
    """The number of differences of each kind to report."""
    past: PastRows | None = None
    """With `replace`: replace all rows of the sinks, whose query has a new checkpoint."""

    @property
    def writes(self) -> bool:
        """Whether the backfill writes."""
        return not (self.compare or self.is_dry_run)


def parse_time(text: str) -> datetime:
    """Parse a date or a time; without a zone it is UTC. Raises `InvalidInput`."""
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            f"'{text}' is not a date or time",
            "write 2026-01-31, '2026-01-31 12:00' (UTC) or 2026-01-31T12:00:00+02:00",
        ) from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def require_ordered_range(start: datetime | None, end: datetime | None) -> None:
    """Raise `InvalidInput` for an empty range."""
    if start is not None and end is not None and start >= end:
        raise InvalidInput(
            f"the range ends at {end.isoformat(' ')}, which is not after its start {start.isoformat(' ')}",
            "pass a --to that is later than --from",
        )
