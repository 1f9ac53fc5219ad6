"""Hooks of a sink for backfills and `run --adopt`: whether others may add or replace rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.spec.base import Spec

if TYPE_CHECKING:
    from millstream.connectors.api.sink import Sink
    from millstream.connectors.api.values.event_time_range import EventTimeRange
    from millstream.spec.output_mode import OutputMode


class SinkBackfill(Spec):
    """A sink as the target of a backfill or of another checkpoint."""

    def into(self, name: str) -> Sink | None:
        """Return the sink with another table, folder or topic; None if a kind cannot."""
        return None

    def backfill_conflict(self, mode: OutputMode) -> str:
        """Explain why a backfill may not add rows next to the query's, as a clause; empty if it may."""
        return ""

    def replacing_range(self, time_range: EventTimeRange) -> Sink | None:
        """Return the sink with a writer that replaces the rows of a range atomically; None if it cannot."""
        return None

    def adoption_conflict(self, mode: OutputMode) -> str:
        """Explain why another checkpoint cannot adopt the existing data; empty if it can."""
        return ""
