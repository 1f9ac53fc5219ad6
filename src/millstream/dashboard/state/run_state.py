"""Compute the state of a run from its events, whether they are live or read from its log."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from millstream.dashboard.state import kafka_lag, timestamps
from millstream.dashboard.state.alerts import Alarms
from millstream.dashboard.state.api_schema import GRAVITY, LEVELS
from millstream.dashboard.state.dead_letter_counts import Counted
from millstream.dashboard.state.graph_state import Drawing
from millstream.dashboard.state.query_state import QueryState
from millstream.engine.events.event_messages import format_event

if TYPE_CHECKING:
    from millstream.dashboard.state import api_schema
    from millstream.dashboard.state.time_series import Point
    from millstream.engine.events.event_bus import Event

VERSION = 1
# Number of lines of the event log that are shown; the log on disk has all.
LINES = 300
# Events without a log line: plots show them, or nothing does.
_UNLOGGED = {"batch_committed", "batch_written", "idle", "described", "checked", "totals"}
_LEVELS: dict[str, api_schema.Level] = {
    "query_failed": "bad",
    "retry": "warn",
    "waiting": "warn",
    "warning": "warn",
    "dead_letter": "warn",
    "set_aside": "warn",
    "gap": "warn",
    "query_stopped": "off",
    "stopping": "off",
    "run_stopped": "off",
}


@dataclass
class RunState:
    """The state of a run after its events so far. Used by one thread at a time."""

    run: api_schema.Run
    queries: dict[str, QueryState] = field(default_factory=dict)
    drawing: Drawing = field(default_factory=Drawing)
    letters: Counted = field(default_factory=Counted)
    alarms: Alarms = field(default_factory=Alarms)
    log: deque[api_schema.Entry] = field(default_factory=lambda: deque(maxlen=LINES))
    findings: list[dict[str, Any]] = field(default_factory=list)
    guarantees: list[dict[str, Any]] = field(default_factory=list)
    plans: list[api_schema.Plan] = field(default_factory=list)
    last: str = ""
    """The id of the last event."""

    def take(self, event: Event, number: int) -> tuple[api_schema.Entry, Point | None]:
        """Process an event with its number in the run. Returns its line in the log and its point in the plots."""
        at = timestamps.parse(event.at)
        self.last = f"{self.run['id']}:{number}"
        match event.event:
            case "described":
                self._described(event.data, at)
            case "checked":
                self.findings, self.plans = event.data["findings"], event.data["plans"]
            case "run_started":
                self.guarantees = event.data["guarantees"]
                for name in event.data["queries"]:
                    self.queries.setdefault(name, QueryState(name, since=at))
            case "run_stopped":
                self.run["ended"], self.run["exit_code"] = event.at, event.data["exit_code"]
        dot = None
        if event.query:
            query = self.queries.setdefault(event.query, QueryState(event.query))
            query.take(event, at)
            if event.event == "batch_committed":
                dot = query.series.points[-1]
        self.letters.take(event)
        entry = self._entry(event)
        if event.event not in _UNLOGGED:
            self.log.append(entry)
        return entry, dot

    def _described(self, data: dict[str, Any], at: float) -> None:
        self.run["pipeline"], self.run["millstream"] = data["pipeline"], data["millstream"]
        self.drawing = Drawing(data["graph"]["nodes"], data["graph"]["edges"])
        self.findings, self.plans = data.get("findings", []), data.get("plans", [])
        self.alarms = Alarms.of(data.get("alerts", []))
        for info in data["queries"]:
            query = self.queries.setdefault(info["name"], QueryState(info["name"], since=at))
            query.trigger, query.interval = info["trigger"], info["trigger_seconds"]
            query.sources = list(info["sources"])

    def _entry(self, event: Event) -> api_schema.Entry:
        return {
            "id": self.last,
            "at": event.at,
            "event": event.event,
            "query": event.query,
            "level": _LEVELS.get(event.event, "ok"),
            "text": format_event(event) or "",
        }

    def worst(self, now: float) -> api_schema.Worst | None:
        """Return the query in the worst state; of several, the one that is in it longest."""
        judgements = [
            (query_state, *query_state.judged(now))
            for query_state in self.queries.values()
            if query_state.starts or query_state.state != "starting"
        ]
        if not judgements:
            return None
        query, state, since, reason = min(
            judgements, key=lambda query_state: (-GRAVITY.index(query_state[1]), query_state[2])
        )
        return {
            "query": query.name,
            "state": state,
            "level": LEVELS[state],
            "since": timestamps.format_timestamp(since),
            "why": reason,
        }

    def document(self, now: float) -> api_schema.Document:
        """Return the whole state at a time; for a past run, at its end."""
        if self.run["ended"] is not None:
            now = timestamps.parse(self.run["ended"])
        worst = self.worst(now)
        queries = [state.as_json(now) for state in self.queries.values()]
        details_by_name = {details["name"]: details for details in queries}
        newest = [state.newest for state in self.queries.values() if state.newest is not None]
        behind = [details["behind"] for details in queries if details["behind"] is not None]
        rates = [details["input_rate"] for details in queries if details["input_rate"] is not None]
        return {
            "version": VERSION,
            "at": timestamps.format_timestamp(now),
            "id": self.last,
            "run": cast("api_schema.Run", dict(self.run)),
            "state": worst["state"] if worst else "starting",
            "level": worst["level"] if worst else "ok",
            "worst": worst,
            "freshness_seconds": round(now - min(newest), 1) if newest else None,
            "rows_in": sum(details["rows_in"] for details in queries),
            "input_rate": round(sum(rates), 1) if rates else None,
            "behind": sum(behind) if behind else None,
            "graph": self.drawing.as_json(details_by_name, self.queries),
            "queries": queries,
            "lag": [
                row
                for state in self.queries.values()
                for row in kafka_lag.lag_json(state.name, state.partitions)
            ],
            "letters": self.letters.as_json(),
            "log": list(self.log),
            "findings": self.findings,
            "guarantees": self.guarantees,
            "plans": self.plans,
            "alerts": self.alarms.evaluate(self.queries, now),
        }


def new_run_state(run: str, at: str, *, live: bool) -> RunState:
    """Return the state of a run before its first event; `live` while the run is active."""
    return RunState(
        {
            "id": run,
            "pipeline": "",
            "started": at,
            "ended": None,
            "exit_code": None,
            "live": live,
            "millstream": "",
        }
    )
