"""One query of a run, as its events tell of it."""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.dashboard import lag, moments
from millstream.dashboard.points import Series, point
from millstream.dashboard.shapes import LEVELS, State

if TYPE_CHECKING:
    from millstream.dashboard import shapes
    from millstream.runtime.events import Event

# A query is stalled after three triggers in silence, and never sooner than after so many seconds: a batch of a few
# seconds is nothing, and Spark tells of an idle query every ten.
PATIENCE = 30.0
# The first batch compiles its code, and reads what a topic has had for days.
FIRST = 120.0
TRIGGERS = 3
# As connectors name a record of a topic.
_RECORD = re.compile(r"partition (\d+) of topic '(.+)', offset (\d+)")


@dataclass
class Followed:
    """What is known of one query. Times are seconds since 1970; counts are since the start of the run."""

    name: str
    trigger: str = ""
    interval: float | None = None
    sources: list[str | None] = field(default_factory=list)
    state: State = "starting"
    since: float = 0.0
    why: str = ""
    heard: float = 0.0
    """When it last gave a sign of life: a start, a batch, a part of one that a sink took, a word that it is idle."""
    figures: dict[str, Any] = field(default_factory=dict)
    batch_at: float | None = None
    newest: float | None = None
    starts: int = 0
    over: int = 0
    """How many batches in a row took longer than the trigger."""
    counts: Counter[str] = field(default_factory=Counter)
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=lag.KEPT))
    partitions: dict[lag.Key, lag.Partition] = field(default_factory=dict)
    behind: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=4000))
    source_rates: dict[str | None, float] = field(default_factory=dict)
    series: Series = field(default_factory=Series)
    failure: shapes.Failure | None = None

    def become(self, state: State, at: float, why: str = "") -> None:
        """Change the state; `since` is when it began."""
        if state != self.state:
            self.since = at
        self.state, self.why = state, why

    def take(self, event: Event, at: float) -> None:
        """Take in one event of this query."""
        data = event.data
        self.since = self.since or at
        match event.event:
            case "query_started":
                self.starts += 1
                self.heard = at
                self.sources = list(data.get("sources") or self.sources)
                self.trigger = (data.get("trigger") or self.trigger).removeprefix("processing_time ")
                self.become("starting", at)
            case "batch_committed":
                self._batch(data, at)
            case "totals":
                # Of a log: batches before it may be missing from there.
                self.counts, self.starts = Counter(data["counts"]), data["starts"]
            case "batch_written":
                self.heard = at
            case "idle":
                self.heard = at
                self.rates.append(0.0)
                self.source_rates = {}
                self.become("idle", at)
            case "dead_letter":
                self.counts["dead_letters"] += data.get("records") or 0
            case "waiting":
                self.become("waiting", at, f"no answer from {data['source']}")
            case "going_on":
                self.heard = at
                self.become("running", at)
            case "retry":
                self.heard = at
                self.become("retrying", at, f"{data['reason']}; again in {data['wait_seconds']} s")
            case "query_failed":
                self.failure = _failure(data)
                self.become("failed", at, _why(self.failure))
            case "query_stopped":
                self.become("stopped", at, data.get("reason", ""))

    def _batch(self, data: dict[str, Any], at: float) -> None:
        self.figures, self.batch_at, self.heard = data, at, at
        self.newest = max(filter(None, (self.newest, moments.perhaps(data["newest"]))), default=None)
        for name in ("rows_in", "rows_out", "late_rows", "malformed"):
            self.counts[name] += data[name] or 0
        self.counts["batches"] += 1
        self.counts["broken"] += sum(
            rows for told in data.get("expectations", {}).values() for rows in told.values()
        )
        self.rates.append(data["input_rate"] or 0.0)
        lag.take(self.partitions, at, data["sources"], self.sources)
        if self.partitions:
            self.behind.append((at, sum(one.behind for one in self.partitions.values())))
        self._of_sources(data)
        self.series.add(point(at, data))
        busy = self.busy()
        self.over = self.over + 1 if busy is not None and busy > 1 else 0
        if self.state in ("stopped", "failed"):
            # Spark's listeners are a little behind: the figures of the last batch may come after the end.
            return
        if self.over > 1:
            took = data["duration_ms"].get("triggerExecution", 0) / 1000
            self.become("slow", at, f"a batch takes {took:.1f} s, and the trigger is {self.interval:g} s")
        else:
            self.become("running" if data["rows_in"] else "idle", at)

    def _of_sources(self, data: dict[str, Any]) -> None:
        """Each source's share of the input rate."""
        rows, rate = data["rows_in"], data["input_rate"]
        told = data["sources"]
        if len(told) == len(self.sources) and rows and rate is not None:
            self.source_rates = {}
            for name, source in zip(self.sources, told, strict=True):
                share = rate * (source.get("numInputRows") or 0) / rows
                self.source_rates[name] = round(self.source_rates.get(name, 0.0) + share, 1)

    def silence(self, now: float) -> float:
        """Seconds since it last gave a sign of life."""
        return max(0.0, now - self.heard)

    def triggers_silent(self, now: float) -> float:
        """The silence in triggers; a trigger without an interval counts as one second, or as its last batch."""
        return self.silence(now) / (self.interval or max(1.0, self.seconds() or 1.0))

    def judged(self, now: float) -> tuple[State, float, str]:
        """State, since when, and why, at a time: silence turns a query that runs into one that is stalled."""
        if self.state in ("starting", "running", "idle", "slow") and self.starts:
            least = FIRST if self.state == "starting" else PATIENCE
            patience = max(least, TRIGGERS * (self.interval or self.seconds() or 1.0))
            if self.silence(now) > patience:
                return "stalled", self.heard, f"no batch was committed for {self.silence(now):.0f} s"
        return self.state, self.since, self.why

    def seconds(self) -> float | None:
        """The duration of the last batch."""
        took = self.figures.get("duration_ms", {}).get("triggerExecution")
        return None if took is None else took / 1000

    def busy(self) -> float | None:
        """The last batch's duration over the trigger's interval."""
        took = self.seconds()
        return None if took is None or not self.interval else round(took / self.interval, 3)

    def behind_now(self) -> int | None:
        """Records of Kafka that are not yet read; None without a partition."""
        return self.behind[-1][1] if self.behind else None

    def told(self, now: float) -> shapes.Query:
        """As the page reads it."""
        state, since, why = self.judged(now)
        figures, took = self.figures, self.seconds()
        out = figures.get("rows_out")
        watermark = moments.perhaps(figures.get("watermark"))
        calm = state in ("idle", "stopped", "failed")
        interval = max(self.interval or 0.0, took or 0.0)
        return {
            "name": self.name,
            "state": state,
            "level": LEVELS[state],
            "since": moments.text(since),
            "why": why,
            "trigger": self.trigger,
            "trigger_seconds": self.interval,
            "batch": figures.get("batch"),
            "last_batch_at": None if self.batch_at is None else moments.text(self.batch_at),
            "rows_in": self.counts["rows_in"],
            "rows_out": self.counts["rows_out"],
            "input_rate": 0.0 if calm else figures.get("input_rate"),
            "processed_rate": 0.0 if calm else figures.get("processed_rate"),
            "output_rate": 0.0 if calm else None if out is None or not interval else round(out / interval, 1),
            "batch_seconds": took,
            "busy": self.busy(),
            "watermark": figures.get("watermark"),
            "newest": None if self.newest is None else moments.text(self.newest),
            "watermark_lag_seconds": None if watermark is None else round(now - watermark, 1),
            "state_rows": figures.get("state_rows", 0),
            "state_bytes": figures.get("state_bytes", 0),
            "late_rows": self.counts["late_rows"],
            "malformed": self.counts["malformed"],
            "dead_letters": self.counts["dead_letters"],
            "broken": self.counts["broken"],
            "restarts": max(0, self.starts - 1),
            "behind": self.behind_now(),
            "rates": list(self.rates),
            "failure": self.failure,
        }


def _failure(data: dict[str, Any]) -> shapes.Failure:
    return {
        "cause": data["cause"],
        "reason": data["reason"],
        "fix": data["fix"],
        "batch": data.get("batch"),
        "reads": data.get("reads", []),
        "record": data.get("record", []),
        "place": _place(data.get("record", [])),
        "value": data.get("value"),
    }


def _place(record: list[str]) -> shapes.Place | None:
    """The place of the one record of a topic by which a batch fails, from its words."""
    found = _RECORD.fullmatch(record[0]) if len(record) == 1 else None
    if found is None:
        return None
    return {"topic": found[2], "partition": int(found[1]), "offset": int(found[3])}


def _why(failure: shapes.Failure) -> str:
    """One sentence: the record first, where it is known."""
    found = f"{', '.join(failure['record'])}: " if failure["record"] else ""
    return f"{found}{failure['reason']}"
