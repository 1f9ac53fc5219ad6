"""Count the dead letters of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.dashboard.state import timestamps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.dashboard.state import api_schema
    from millstream.dashboard.state.query_state import QueryState
    from millstream.engine.events.event_bus import Event


@dataclass
class DeadLetterCounts:
    """Dead letters by query, source and reason."""

    reasons: dict[tuple[str, str, str], api_schema.Reason] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Count one event; ignore events of other kinds."""
        data = event.data
        match event.event:
            case "dead_letter":
                reasons = data.get("reasons") or [
                    {"source": name, "reason": "dead letter", "records": records}
                    for name, records in data.get("sources", {}).items()
                ]
                for entry in reasons:
                    self._add(event, entry["source"], entry["reason"], entry["records"] or 0)

    def _add(self, event: Event, source: str, reason: str, records: int) -> None:
        key = (event.query, source, reason)
        entry_before = self.reasons.get(key)
        self.reasons[key] = {
            "reason": reason,
            "source": source,
            "query": event.query,
            "records": (entry_before["records"] if entry_before else 0) + records,
            "last": event.at,
        }

    def as_json(self, queries: Iterable[QueryState]) -> api_schema.Letters:
        """Convert to the page's JSON, most frequent reason first, with the batches that wait for sinks of queries."""
        reasons = sorted(self.reasons.values(), key=lambda entry: -entry["records"])
        return {
            "records": sum(entry["records"] for entry in reasons),
            "reasons": [entry.copy() for entry in reasons],
            "set_aside": [
                {
                    "query": query.name,
                    "sink": sink,
                    "batches": spool.batches,
                    "reason": spool.reason,
                    "since": timestamps.format_timestamp(spool.since),
                }
                for query in queries
                for sink, spool in query.spooled.items()
            ],
        }
