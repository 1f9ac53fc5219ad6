"""The state of a run, folded from its events: the same whether they happen, or are read from its log."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from millstream.dashboard import lag, moments
from millstream.dashboard.alarms import Alarms
from millstream.dashboard.drawing import Drawing
from millstream.dashboard.following import Followed
from millstream.dashboard.letters import Counted
from millstream.dashboard.shapes import GRAVITY, LEVELS
from millstream.runtime.sentences import sentence

if TYPE_CHECKING:
    from millstream.dashboard import shapes
    from millstream.dashboard.points import Point
    from millstream.runtime.events import Event

VERSION = 1
# So many lines of the event log are shown; the log on disk has all.
LINES = 300
# Told by the plots, or by nothing.
_UNSAID = {"batch_committed", "batch_written", "idle", "described", "checked", "totals"}
_LEVELS: dict[str, shapes.Level] = {
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
class Folded:
    """What is known of a run after its events so far. Used by one thread at a time."""

    run: shapes.Run
    queries: dict[str, Followed] = field(default_factory=dict)
    drawing: Drawing = field(default_factory=Drawing)
    letters: Counted = field(default_factory=Counted)
    alarms: Alarms = field(default_factory=Alarms)
    log: deque[shapes.Entry] = field(default_factory=lambda: deque(maxlen=LINES))
    findings: list[dict[str, Any]] = field(default_factory=list)
    guarantees: list[dict[str, Any]] = field(default_factory=list)
    plans: list[shapes.Plan] = field(default_factory=list)
    last: str = ""
    """The id of the last event."""

    def take(self, event: Event, number: int) -> tuple[shapes.Entry, Point | None]:
        """Take in an event with its number in the run; gives its line in the log, and its point in the plots."""
        at = moments.seconds(event.at)
        self.last = f"{self.run['id']}:{number}"
        match event.event:
            case "described":
                self._described(event.data, at)
            case "checked":
                self.findings, self.plans = event.data["findings"], event.data["plans"]
            case "run_started":
                self.guarantees = event.data["guarantees"]
                for name in event.data["queries"]:
                    self.queries.setdefault(name, Followed(name, since=at))
            case "run_stopped":
                self.run["ended"], self.run["exit_code"] = event.at, event.data["exit_code"]
        dot = None
        if event.query:
            query = self.queries.setdefault(event.query, Followed(event.query))
            query.take(event, at)
            if event.event == "batch_committed":
                dot = query.series.points[-1]
        self.letters.take(event)
        entry = self._entry(event)
        if event.event not in _UNSAID:
            self.log.append(entry)
        return entry, dot

    def _described(self, data: dict[str, Any], at: float) -> None:
        self.run["pipeline"], self.run["millstream"] = data["pipeline"], data["millstream"]
        self.drawing = Drawing(data["graph"]["nodes"], data["graph"]["edges"])
        self.findings, self.plans = data.get("findings", []), data.get("plans", [])
        self.alarms = Alarms.of(data.get("alerts", []))
        for told in data["queries"]:
            one = self.queries.setdefault(told["name"], Followed(told["name"], since=at))
            one.trigger, one.interval = told["trigger"], told["trigger_seconds"]
            one.sources = list(told["sources"])

    def _entry(self, event: Event) -> shapes.Entry:
        return {
            "id": self.last,
            "at": event.at,
            "event": event.event,
            "query": event.query,
            "level": _LEVELS.get(event.event, "ok"),
            "text": sentence(event) or "",
        }

    def worst(self, now: float) -> shapes.Worst | None:
        """The query that is worst off; of several in one state the one that is so for longest."""
        told = [
            (one, *one.judged(now)) for one in self.queries.values() if one.starts or one.state != "starting"
        ]
        if not told:
            return None
        query, state, since, why = min(told, key=lambda one: (-GRAVITY.index(one[1]), one[2]))
        return {
            "query": query.name,
            "state": state,
            "level": LEVELS[state],
            "since": moments.text(since),
            "why": why,
        }

    def document(self, now: float) -> shapes.Document:
        """The whole state at a time, which for a run that has ended is its end."""
        if self.run["ended"] is not None:
            now = moments.seconds(self.run["ended"])
        worst = self.worst(now)
        queries = [one.told(now) for one in self.queries.values()]
        known = {told["name"]: told for told in queries}
        newest = [one.newest for one in self.queries.values() if one.newest is not None]
        behind = [told["behind"] for told in queries if told["behind"] is not None]
        rates = [told["input_rate"] for told in queries if told["input_rate"] is not None]
        return {
            "version": VERSION,
            "at": moments.text(now),
            "id": self.last,
            "run": cast("shapes.Run", dict(self.run)),
            "state": worst["state"] if worst else "starting",
            "level": worst["level"] if worst else "ok",
            "worst": worst,
            "freshness_seconds": round(now - min(newest), 1) if newest else None,
            "rows_in": sum(told["rows_in"] for told in queries),
            "input_rate": round(sum(rates), 1) if rates else None,
            "behind": sum(behind) if behind else None,
            "graph": self.drawing.told(known, self.queries),
            "queries": queries,
            "lag": [row for one in self.queries.values() for row in lag.told(one.name, one.partitions)],
            "letters": self.letters.told(),
            "log": list(self.log),
            "findings": self.findings,
            "guarantees": self.guarantees,
            "plans": self.plans,
            "alerts": self.alarms.told(self.queries, now),
        }


def begun(run: str, at: str, *, live: bool) -> Folded:
    """The state of a run before its first event; `live` while events still come."""
    return Folded(
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
