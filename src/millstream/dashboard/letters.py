"""What a run set aside: records by reason, and batches that wait for their sink."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.dashboard import shapes
    from millstream.runtime.events import Event


@dataclass
class Counted:
    """Dead letters by query, source and reason; batches set aside by query and sink."""

    reasons: dict[tuple[str, str, str], shapes.Reason] = field(default_factory=dict)
    waiting: dict[tuple[str, str], shapes.SetAside] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Take in one event; those of other things change nothing."""
        data = event.data
        match event.event:
            case "dead_letter":
                told = data.get("reasons") or [
                    {"source": name, "reason": "set aside", "records": records}
                    for name, records in data.get("sources", {}).items()
                ]
                for one in told:
                    self._add(event, one["source"], one["reason"], one["records"] or 0)
            case "set_aside":
                known = self.waiting.get((event.query, data["sink"]))
                self.waiting[event.query, data["sink"]] = {
                    "query": event.query,
                    "sink": data["sink"],
                    "batches": (known["batches"] if known else 0) + 1,
                    "reason": data["reason"],
                    "since": known["since"] if known else event.at,
                }
            case "delivered_later":
                known = self.waiting.get((event.query, data["sink"]))
                if known is not None:
                    known["batches"] -= 1
                    if known["batches"] <= 0:
                        del self.waiting[event.query, data["sink"]]

    def _add(self, event: Event, source: str, reason: str, records: int) -> None:
        key = (event.query, source, reason)
        known = self.reasons.get(key)
        self.reasons[key] = {
            "reason": reason,
            "source": source,
            "query": event.query,
            "records": (known["records"] if known else 0) + records,
            "last": event.at,
        }

    def told(self) -> shapes.Letters:
        """As the page reads it, the most frequent reason first."""
        reasons = sorted(self.reasons.values(), key=lambda one: -one["records"])
        return {
            "records": sum(one["records"] for one in reasons),
            "reasons": [one.copy() for one in reasons],
            "set_aside": [one.copy() for one in self.waiting.values()],
        }
