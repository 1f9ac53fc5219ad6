"""Compute the state of a run from its events, whether they are live or read from its log."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from millstream.dashboard.state import kafka_lag, timestamps
from millstream.dashboard.state.alerts import Alarms
from millstream.dashboard.state.api_schema import GRAVITY, LEVELS
from millstream.dashboard.state.dead_letter_counts import DeadLetterCounts
from millstream.dashboard.state.graph_state import Drawing
from millstream.dashboard.state.headline import HeadlineInput, StartPhase, UnreachableSource, build_headline
from millstream.dashboard.state.query_state import QueryState
from millstream.engine.events.event_messages import format_event
from millstream.engine.open_files_watch import WARNING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.dashboard.state import api_schema
    from millstream.dashboard.state.time_series import Point
    from millstream.engine.events.event_bus import Event
    from millstream.spark.resources import OpenFilesReader

VERSION = 1
# Number of lines of the event log that are shown; the log on disk has all.
LINES = 300
# Events without a log line: plots show them, or nothing does.
_UNLOGGED = {
    "phase",
    "batch_started",
    "batch_committed",
    "batch_written",
    "idle",
    "described",
    "checked",
    "totals",
}
# Seconds between two values of the run's history, and how many of them are kept: some eight minutes.
SAMPLE = 5.0
SAMPLES = 100
# Nothing arrives for such a query: its events grow older, and its last batch stays the last one.
QUIET: tuple[api_schema.State, ...] = ("idle", "stopped", "failed")
_LEVELS: dict[str, api_schema.Level] = {
    "query_failed": "bad",
    "retry": "warn",
    "waiting": "warn",
    "warning": "warn",
    "dead_letter": "warn",
    "set_aside": "warn",
    "still_spooled": "warn",
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
    letters: DeadLetterCounts = field(default_factory=DeadLetterCounts)
    alarms: Alarms = field(default_factory=Alarms)
    log: deque[api_schema.Entry] = field(default_factory=lambda: deque(maxlen=LINES))
    findings: list[dict[str, Any]] = field(default_factory=list)
    guarantees: list[dict[str, Any]] = field(default_factory=list)
    plans: list[api_schema.Plan] = field(default_factory=list)
    last: str = ""
    """The id of the last event."""
    phase: StartPhase | None = None
    silent: dict[str, UnreachableSource] = field(default_factory=dict)
    is_stopping: bool = False
    history: deque[tuple[int | None, float | None, float | None, float | None]] = field(
        default_factory=lambda: deque(maxlen=SAMPLES)
    )
    """Lag, input rate, freshness and load, one of each every few seconds."""
    actions: tuple[str, ...] = ()
    """What the page may ask of the run."""
    read_open_files: OpenFilesReader = tuple
    """Counts the open files of the run while it has a session."""
    _sampled: float = 0.0

    def take(self, event: Event, number: int) -> tuple[api_schema.Entry, Point | None]:
        """Process an event with its number in the run. Returns its line in the log and its point in the plots."""
        at = timestamps.parse(event.at)
        self.last = f"{self.run['id']}:{number}"
        match event.event:
            case "described":
                self._described(event.data, at)
            case "checked":
                self.findings, self.plans = event.data["findings"], event.data["plans"]
            case "phase":
                self.phase = StartPhase(event.data["text"], at)
            case "stopping" | "query_failed":
                # A query that gave up ends the run.
                self.is_stopping, self.actions = True, ()
            case "run_started":
                self.phase = StartPhase("starting the queries", at)
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
        self.sample(at)
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
            # The table of guarantees that follows the first line has its own place on the page.
            "text": (format_event(event) or "").partition("\n" if event.event == "run_started" else "\0")[0],
        }

    def observe_ends(self, source: str, ends: kafka_lag.PartitionOffsets, at: float) -> None:
        """Record where the partitions of a source end, as its broker said at a time."""
        self.silent.pop(source, None)
        for query in self.queries.values():
            query.observe_ends(source, ends, at)
        self.sample(at)

    def observe_silence(self, source: str, error: str, at: float) -> None:
        """Record that the broker of a source did not respond."""
        since = self.silent[source].since if source in self.silent else at
        self.silent[source] = UnreachableSource(source, since, error)

    def sample(self, at: float) -> None:
        """Add the run's figures to its history, at most once in a few seconds."""
        if at - self._sampled < SAMPLE or not any(query.starts for query in self.queries.values()):
            return
        self._sampled = at
        states, active = self.queries.values(), self._active(at)
        rates = [0.0 if state.is_inactive(at) else state.figures.get("input_rate") for state in states]
        known_rates = [rate for rate in rates if rate is not None]
        self.history.append(
            (
                kafka_lag.distinct_behind(state.topics for state in states),
                round(sum(known_rates), 1) if known_rates else None,
                _freshness(active, at),
                _load(active, at),
            )
        )

    def _active(self, now: float) -> list[QueryState]:
        """Return the queries that are neither idle nor over, or all of them if there is none."""
        queries = list(self.queries.values())
        # An idle query may have stalled, or fall behind.
        active = [query for query in queries if query.state not in QUIET or query.judged(now)[0] not in QUIET]
        return active or queries

    def worst(self, now: float) -> api_schema.Worst | None:
        """Return the query in the worst state; of several, the one that is in it longest.

        A query that is slow and one that falls behind are equally bad: there more records behind are worse.
        """
        judgements = [
            (query_state, *query_state.judged(now))
            for query_state in self.queries.values()
            if query_state.starts or query_state.state != "starting"
        ]
        if not judgements:
            return None
        query, state, since, reason = min(judgements, key=_severity)
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
        active = self._active(now)
        behind = kafka_lag.distinct_behind(state.topics for state in self.queries.values())
        behind_at = [details["behind_at"] for details in queries if details["behind_at"] is not None]
        alerts = self.alarms.evaluate(self.queries, now)
        catch_up = _catch_up_seconds(self.queries.values(), now)
        rows_in = sum(details["rows_in"] for details in queries)
        rates = [details["input_rate"] for details in queries if details["input_rate"] is not None]
        columns = list(zip(*self.history, strict=True)) or [()] * 4
        run = cast("api_schema.Run", dict(self.run))
        open_files = self.read_open_files()
        facts = HeadlineInput(
            now,
            run,
            queries,
            worst,
            alerts,
            self.phase or StartPhase("checking the pipeline", timestamps.parse(self.run["started"])),
            list(self.silent.values()),
            rows_in,
            behind,
            any(state.has_backlog() for state in self.queries.values()),
            all(state.is_backlog_shrinking() for state in self.queries.values() if state.has_backlog()),
            catch_up,
            self.is_stopping,
            max(
                (files for files in open_files if files.share >= WARNING),
                key=attrgetter("share"),
                default=None,
            ),
        )
        return {
            "version": VERSION,
            "at": timestamps.format_timestamp(now),
            "id": self.last,
            "run": run,
            "state": worst["state"] if worst else "starting",
            "level": worst["level"] if worst else "start",
            "worst": worst,
            "headline": build_headline(facts),
            "freshness_seconds": _freshness(active, now),
            "rows_in": rows_in,
            "input_rate": round(sum(rates), 1) if rates else None,
            "behind": behind,
            "behind_at": min(behind_at, default=None),
            "caught_up_in_seconds": catch_up,
            "busy": _load(active, now),
            "history": {
                "behind": list(columns[0]),
                "input_rate": list(columns[1]),
                "freshness": list(columns[2]),
                "busy": list(columns[3]),
            },
            "graph": self.drawing.as_json(details_by_name, self.queries, now),
            "queries": queries,
            "lag": [
                row
                for state in self.queries.values()
                for row in kafka_lag.lag_json(
                    state.name,
                    state.topics,
                    now,
                    is_query_late=LEVELS[state.judged(now)[0]] in ("warn", "bad"),
                    is_read_lately=state.is_read_lately(now),
                )
            ],
            "letters": self.letters.as_json(self.queries.values()),
            "log": list(self.log),
            "findings": self.findings,
            "guarantees": self.guarantees,
            "plans": self.plans,
            "alerts": alerts,
            "actions": list(self.actions) if self.run["live"] else [],
            "open_files": [
                {"process": files.process, "open": files.open, "max": files.max} for files in open_files
            ],
        }


def _freshness(queries: Iterable[QueryState], now: float) -> float | None:
    """Return the age of the newest event of the query that is furthest behind."""
    newest = [query.newest for query in queries if query.newest is not None]
    return round(now - min(newest), 1) if newest else None


def _load(queries: Iterable[QueryState], now: float) -> float | None:
    """Return the load of the query that needs the largest share of its trigger."""
    return max((load for query in queries if (load := query.load(now)) is not None), default=None)


def _catch_up_seconds(queries: Iterable[QueryState], now: float) -> float | None:
    """Return the estimate of the query that takes longest, or None if a query with a backlog has none."""
    estimates = [query.catch_up_seconds(now) for query in queries if query.has_backlog()]
    known = [estimate for estimate in estimates if estimate is not None]
    return max(known) if known and len(known) == len(estimates) else None


def _severity(judgement: tuple[QueryState, api_schema.State, float, str]) -> tuple[int, int, float]:
    query, state, since, _ = judgement
    if state in ("slow", "falling_behind"):
        return -GRAVITY.index("falling_behind"), -(query.behind_now() or 0), since
    return -GRAVITY.index(state), 0, since


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
