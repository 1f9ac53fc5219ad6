"""Count the dead letters and spooled batches of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.dashboard.state import api_schema
    from millstream.engine.events.event_bus import Event


@dataclass
class DeadLetterCounts:
    """Dead letters by query, source and reason, and spooled batches by query and sink."""

    reasons: dict[tuple[str, str, str], api_schema.Reason] = field(default_factory=dict)
    waiting: dict[tuple[str, str], api_schema.SetAside] = field(default_factory=dict)

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
            case "set_aside":
                entry_before = self.waiting.get((event.query, data["sink"]))
                self.waiting[event.query, data["sink"]] = {
                    "query": event.query,
                    "sink": data["sink"],
                    "batches": (entry_before["batches"] if entry_before else 0) + 1,
                    "reason": data["reason"],
                    "since": entry_before["since"] if entry_before else event.at,
                }
            case "delivered_later":
                entry_before = self.waiting.get((event.query, data["sink"]))
                if entry_before is not None:
                    entry_before["batches"] -= 1
                    if entry_before["batches"] <= 0:
                        del self.waiting[event.query, data["sink"]]

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

    def as_json(self) -> api_schema.Letters:
        """Convert to the page's JSON, most frequent reason first."""
        reasons = sorted(self.reasons.values(), key=lambda entry: -entry["records"])
        return {
            "records": sum(entry["records"] for entry in reasons),
            "reasons": [entry.copy() for entry in reasons],
            "set_aside": [entry.copy() for entry in self.waiting.values()],
        }
