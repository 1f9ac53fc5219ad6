"""A topic, a query that reads it, and the state of the page for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.engine.events.event_bus import Event
from unit.dashboard.conftest import START, at, batch, folded, started

if TYPE_CHECKING:
    from millstream.dashboard.state import api_schema
    from millstream.dashboard.state.run_state import RunState

TRIGGER = 5.0
SINKS = ["delta:funnel", "postgres:funnel"]


@dataclass
class Topic:
    """A topic of one partition and a query that reads it: what is true, whatever the page knows of it."""

    state: RunState = field(default_factory=lambda: folded(started(1)))
    end: int = 0
    committed: int = 0
    planned: int = 0
    planned_at: float = 0.0
    end_at_plan: int = 0
    seen: tuple[float, int] | None = None
    """When the page last asked the broker, and what was the end then."""
    number: int = 0
    taken: int = 10

    def take(self, event: Event) -> None:
        self.taken += 1
        self.state.take(event, self.taken)

    def poll(self, now: float) -> None:
        self.seen = (now, self.end)
        self.state.observe_ends("clicks", {"clicks": {0: self.end}}, START + now)

    def begin(self, now: float) -> None:
        self.planned = self.end_at_plan = self.end
        self.planned_at = now
        self.take(Event("batch_started", "funnel", {"batch": self.number, "sinks": SINKS}, at(now)))

    def write(self, sink: str, now: float) -> None:
        data = {"batch": self.number, "sink": sink, "rows": 1, "skipped": False, "seconds": 1.0}
        self.take(Event("batch_written", "funnel", data, at(now)))

    def commit(self, now: float, **more: Any) -> None:
        rows, took = self.planned - self.committed, now - self.planned_at
        source = {
            "description": "KafkaV2[Subscribe[clicks]]",
            "endOffset": {"clicks": {"0": self.planned}},
            "latestOffset": {"clicks": {"0": self.end_at_plan}},
            "numInputRows": rows,
        }
        figures = {
            "began": at(self.planned_at),
            "rows_in": rows,
            "input_rate": rows / TRIGGER,
            "duration_ms": {"addBatch": int(took * 1000), "triggerExecution": int(took * 1000)},
            "sources": [source],
        }
        self.take(batch(self.number, now, **{**figures, **more}))
        self.committed, self.number = self.planned, self.number + 1

    def run_batch(self, now: float, seconds: float = 1.0, rows: int = 100, **more: Any) -> None:
        """Let rows arrive, and read them in a batch that begins now."""
        self.end += rows
        self.begin(now)
        self.commit(now + seconds, **more)

    def headline(self, now: float) -> api_schema.Headline:
        return self.state.document(START + now)["headline"]

    def sentence(self, now: float) -> tuple[str, str, str]:
        headline = self.headline(now)
        return headline["level"], headline["text"], headline["detail"]
