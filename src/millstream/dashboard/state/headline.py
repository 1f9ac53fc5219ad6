"""Say in one sentence how a run is doing: the top of the page. It says nothing that its figures do not show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from millstream.dashboard.state import timestamps
from millstream.dashboard.state.kafka_lag import CURRENT
from millstream.dashboard.state.query_verdict import format_seconds
from millstream.engine.events.event_messages import format_count
from millstream.engine.open_files_watch import describe, explain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.dashboard.state import api_schema
    from millstream.spark.resources import OpenFiles

VERBS: dict[api_schema.State, str] = {
    "failed": "has failed",
    "stalled": "is stalled",
    "retrying": "is retrying",
    "waiting": "is waiting for a source",
    "spooling": "cannot write to a sink",
    "falling_behind": "is falling behind",
    "slow": "is slower than its trigger",
    "watermark_stuck": "has a watermark that does not move",
    "starting": "is starting",
    "stopped": "has stopped",
    "idle": "is idle",
    "running": "is running",
}
WORDS: dict[api_schema.State, str] = {
    "falling_behind": "falling behind",
    "watermark_stuck": "watermark stuck",
}
"""Words for states whose name is no word."""


class UnreachableSource(NamedTuple):
    """A source whose broker does not respond to the page, since when, and the error."""

    source: str
    since: float
    error: str


class StartPhase(NamedTuple):
    """What a run does before its queries start, and since when."""

    text: str
    since: float


class HeadlineInput(NamedTuple):
    """What a headline is made of, at a time in seconds since 1970."""

    now: float
    run: api_schema.Run
    queries: Sequence[api_schema.QueryDetails]
    worst: api_schema.Worst | None
    alerts: Sequence[api_schema.Alert]
    phase: StartPhase
    silent: Sequence[UnreachableSource]
    rows_in: int
    behind: int | None
    """Records that at least one query has not read."""
    has_backlog: bool = False
    """Whether more records wait for a query than arrive in two of its triggers."""
    is_backlog_shrinking: bool = False
    """Whether each such query has fewer of them from batch to batch."""
    catch_up_seconds: float | None = None
    """The estimated seconds until all queries have read all records."""
    is_stopping: bool = False
    many_files: OpenFiles | None = None
    """A process that has nearly as many open files as it may have."""


def build_headline(facts: HeadlineInput) -> api_schema.Headline:
    """Return the headline of a run: its most serious news, else how far it has read."""
    worst, run = facts.worst, facts.run
    if worst is not None and worst["level"] in ("bad", "warn"):
        return _of_worst(facts, worst)
    if not run["live"]:
        return _of_end(facts)
    if facts.many_files is not None:
        cause, fix = explain(facts.many_files)
        detail = f"{cause}; {fix}" if cause else fix
        return _headline("warn", "open files", describe(facts.many_files), detail)
    firing = next((alert for alert in facts.alerts if alert["firing"]), None)
    if firing is not None:
        return _of_alert(facts, firing)
    if worst is None:
        detail = f"{facts.phase.text}, {format_seconds(facts.now - facts.phase.since)} so far"
        return _headline("start", "starting", "The run is starting", detail, since=run["started"])
    if facts.silent:
        silence = facts.silent[0]
        return _headline(
            "warn",
            "no response",
            f"The broker of {silence.source} does not respond",
            f"{silence.error}; figures of its lag are from before",
            since=timestamps.format_timestamp(silence.since),
        )
    if facts.is_stopping:
        return _headline(
            "off", "stopping", "The run is stopping", "batches in progress finish and commit", worst["since"]
        )
    return _of_wellbeing(facts, worst)


def _headline(
    level: api_schema.Level,
    word: str,
    text: str,
    detail: str,
    since: str | None = None,
    *,
    also: str = "",
    alert: str | None = None,
) -> api_schema.Headline:
    return {
        "level": level,
        "word": word,
        "text": text,
        "detail": detail,
        "also": also,
        "since": since,
        "alert": alert,
    }


def _of_worst(facts: HeadlineInput, worst: api_schema.Worst) -> api_schema.Headline:
    others = [
        f"{query['name']} {word_of(query['state'])}"
        for query in facts.queries
        if query["name"] != worst["query"] and query["level"] in ("bad", "warn")
    ]
    if facts.many_files is not None:
        others.append(describe(facts.many_files))
    return _headline(
        worst["level"],
        word_of(worst["state"]),
        f"{worst['query']} {VERBS[worst['state']]}",
        worst["why"],
        worst["since"],
        also=f"also: {', '.join(others)}" if others else "",
    )


def word_of(state: api_schema.State) -> str:
    """Return the word for a state, as the page shows it."""
    return WORDS.get(state, state)


def _of_end(facts: HeadlineInput) -> api_schema.Headline:
    run = facts.run
    code, ended = run["exit_code"], run["ended"]
    seconds = timestamps.parse(ended or timestamps.format_timestamp(facts.now)) - timestamps.parse(
        run["started"]
    )
    is_well = code in (0, None)
    return _headline(
        "off" if is_well else "bad",
        "ended",
        "The run has ended" if is_well else f"The run ended with exit code {code}",
        f"{format_count(facts.rows_in, 'row')} read in {format_seconds(seconds)}",
        since=ended,
    )


def _of_alert(facts: HeadlineInput, firing: api_schema.Alert) -> api_schema.Headline:
    texts = [
        f"{alert['query']}: {alert['text']}"
        for alert in facts.alerts
        if alert["firing"] and alert["name"] == firing["name"]
    ]
    name = firing["name"]
    return _headline("warn", "alert", f"Alert: {name}", " · ".join(texts), firing["since"], alert=name)


def _of_wellbeing(facts: HeadlineInput, worst: api_schema.Worst) -> api_schema.Headline:
    queries = facts.queries
    total = f"{len(queries)} {'query' if len(queries) == 1 else 'queries'}"
    starting = [query for query in queries if query["state"] == "starting"]
    if starting:
        detail = " · ".join(_describe_start(query) for query in starting)
        return _headline("start", "starting", "Starting", detail, worst["since"])
    if all(query["state"] == "stopped" for query in queries):
        return _headline("off", "stopped", "All queries have stopped", total, worst["since"])
    lag = _describe_lag(facts)
    if facts.has_backlog and not facts.is_backlog_shrinking:
        detail = " · ".join(filter(None, (total, lag)))
        return _headline("ok", "backlog", "Running with a backlog", detail, worst["since"])
    if facts.has_backlog:
        estimate = facts.catch_up_seconds
        rest = "" if estimate is None else f"caught up in about {round_up_seconds(estimate)}"
        detail = " · ".join(filter(None, (total, lag, rest)))
        return _headline("ok", "catching up", "Catching up", detail, worst["since"])
    if facts.rows_in == 0:
        detail = (
            lag
            if lag and "all records" not in lag
            else "send data to a source, or check the addresses in the spec"
        )
        return _headline(
            "ok", worst["state"], "No rows have arrived yet", f"{total} running · {detail}", worst["since"]
        )
    return _headline(
        "ok", worst["state"], "All is well", " · ".join(filter(None, (total, lag))), worst["since"]
    )


def _describe_start(query: api_schema.QueryDetails) -> str:
    """Return in which phase of its start a query is."""
    running = query["running"]
    if running is None:
        return f"{query['name']} is planning its first batch"
    text = f"{query['name']}: first batch, {format_seconds(running['seconds'])} so far"
    if running["written"]:
        text = f"{text}, {', '.join(running['written'])} written"
    return text


def _describe_lag(facts: HeadlineInput) -> str:
    """Return how many records wait. Claims that all are read only if the broker has just said so."""
    known = [query for query in facts.queries if query["behind"] is not None]
    seen = [timestamps.parse(query["behind_at"]) for query in known if query["behind_at"]]
    behind = facts.behind
    if behind is None or not seen:
        return ""
    age = facts.now - min(seen)
    is_current = age <= CURRENT
    if not behind:
        return "all records are read" if is_current else f"all records were read {format_seconds(age)} ago"
    text = f"{format_count(behind, 'record')} {'waits' if behind == 1 else 'wait'} to be read"
    return text if is_current else f"{text}, as of {format_seconds(age)} ago"


def round_up_seconds(seconds: float) -> str:
    """Format an estimated length of time: `10 s`, `40 s`, `3 min`, `2 h`. It rounds up, and claims no more digits."""
    for unit, size, step in (("s", 1, 10), ("min", 60, 1)):
        number = math.ceil(seconds / size / step) * step
        if number < 90:
            return f"{number} {unit}"
    return f"{math.ceil(seconds / 3600)} h"
