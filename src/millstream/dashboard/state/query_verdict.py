"""Judge how a query is doing at a time: the worst of what its events, its running batch and its lag say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.dashboard.state import timestamps
from millstream.dashboard.state.api_schema import GRAVITY
from millstream.dashboard.state.kafka_lag import is_growing, is_jump
from millstream.engine.events.event_messages import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from millstream.dashboard.state.api_schema import Failure, Place, State
    from millstream.dashboard.state.query_state import QueryState

# A query is stalled after three triggers without activity, but not before this many seconds, because a batch of a few
# seconds is normal and Spark reports an idle query every ten seconds.
PATIENCE = 30.0
# Seconds for the first batch, which compiles its code and may read days of a topic.
FIRST = 120.0
TRIGGERS = 3
# A batch is too long after this many triggers. The first one of a start compiles code: not before these seconds.
OVERDUE = 2
FIRST_OVERDUE = 30.0
# A batch that runs is alive, so it counts as stalled later than silence does: after this many triggers and seconds.
STALLED_TRIGGERS = 10
STALLED_BATCH, STALLED_FIRST_BATCH = 120.0, 600.0
# Lag counts as growing over this many triggers and at least these seconds.
GROWING_TRIGGERS = 6
GROWING = 60.0
# Records that arrive within these triggers wait between two batches without anything being late.
USUAL_TRIGGERS = 2.0
# A watermark is stuck if it is the same after this many batches with rows and this long, while newer rows arrive.
STUCK_BATCHES = 3
STUCK = 60.0
# The text by which connectors name a record of a topic.
_RECORD = re.compile(r"partition (\d+) of topic '(.+)', offset (\d+)")


class QueryJudgement(NamedTuple):
    """The state of a query, since when, and why."""

    state: State
    since: float
    why: str


def judge(query: QueryState, now: float) -> QueryJudgement:
    """Return the worst state that holds for a query at a time."""
    verdict = QueryJudgement(query.state, query.since, query.why)
    if query.state in ("failed", "stopped", "retrying", "waiting"):
        return verdict
    return max([verdict, *_problems(query, now)], key=lambda judgement: GRAVITY.index(judgement.state))


def is_stalled(query: QueryState, now: float) -> bool:
    """Return whether a query is silent for too long, or runs a batch that takes far too long."""
    problems = (_judge_running_batch(query, now), _judge_silence(query, now))
    return any(problem is not None and problem.state == "stalled" for problem in problems)


def _problems(query: QueryState, now: float) -> Iterator[QueryJudgement]:
    long_batch = _judge_running_batch(query, now)
    for problem in (
        long_batch,
        _judge_silence(query, now),
        # While a batch takes too long, lag grows for that reason.
        _judge_lag(query, now) if long_batch is None else None,
        _judge_watermark(query),
        _judge_spool(query),
    ):
        if problem is not None:
            yield problem


def _judge_running_batch(query: QueryState, now: float) -> QueryJudgement | None:
    """Return `slow` or `stalled` for a batch that has run for too many triggers.

    Without an interval no batch is slow, and a trigger counts as the last batch.
    """
    batch = query.running
    if batch is None:
        return None
    seconds, is_first = now - batch.began, query.state == "starting"
    trigger = query.interval or query.seconds() or 0.0
    limit = max(STALLED_FIRST_BATCH if is_first else STALLED_BATCH, STALLED_TRIGGERS * trigger)
    overdue = max(OVERDUE * trigger, FIRST_OVERDUE if is_first else 0.0) if query.interval else limit
    if seconds <= overdue:
        return None
    why = f"{'the first batch' if is_first else 'a batch'} has run for {format_seconds(seconds)}"
    if query.interval:
        why = f"{why}, and the trigger is {query.interval:g} s"
    if sinks := batch.describe_sinks():
        why = f"{why}; {sinks}"
    return QueryJudgement("stalled" if seconds > limit else "slow", batch.began, why)


def _judge_silence(query: QueryState, now: float) -> QueryJudgement | None:
    """Return `stalled` for a query that has given no sign of life, and runs no batch."""
    if not query.starts or query.running is not None:
        return None
    least = FIRST if query.state == "starting" else PATIENCE
    trigger = query.interval or max(query.checkpoint_interval or 0.0, query.seconds() or 0.0)
    patience = max(least, TRIGGERS * trigger)
    silence = query.silence(now)
    if silence <= patience:
        return None
    return QueryJudgement(
        "stalled", query.last_event_at, f"no batch was committed for {format_seconds(silence)}"
    )


def is_lag_growing(query: QueryState, now: float, seconds: float) -> bool:
    """Return whether ever more records wait, over these seconds or over six triggers if those take longer."""
    length = max(seconds, GROWING_TRIGGERS * _trigger_seconds(query))
    return not _is_lag_usual(query) and is_growing(query.behind, now, length)


def _is_lag_usual(query: QueryState) -> bool:
    """Return whether no more records wait than arrive in two triggers: between two batches lag grows by itself."""
    usual = USUAL_TRIGGERS * _trigger_seconds(query) * (query.arrival_rate() or 0.0)
    return (query.behind_now() or 0) <= usual


def _trigger_seconds(query: QueryState) -> float:
    """Return the interval of the trigger; without one, the duration of the last batch."""
    return query.interval or query.seconds() or 1.0


def _judge_lag(query: QueryState, now: float) -> QueryJudgement | None:
    """Return `falling_behind` if more records wait than arrive in two triggers, and ever more."""
    length = max(GROWING, GROWING_TRIGGERS * _trigger_seconds(query))
    behind = query.behind_now()
    if not behind or query.state == "starting" or _is_lag_usual(query):
        return None
    if is_growing(query.behind, now, length):
        since, then = now - length, next(records for at, records in query.behind if at >= now - length)
    elif query.running is not None and _has_jumped(query.behind, behind, query.running.began, length):
        since = query.running.began
        then = next(records for at, records in reversed(query.behind) if at <= since)
    else:
        return None
    return QueryJudgement(
        "falling_behind",
        since,
        f"{format_count(behind, 'record')} wait, and {then:,} did {format_seconds(now - since)} ago",
    )


def _has_jumped(history: Iterable[tuple[float, int]], behind: int, began: float, length: float) -> bool:
    """Return whether far more records wait than at any time in the `length` seconds before a batch began.

    The lag of the batches before it goes up and down, so that a burst during one long batch is no steady growth.
    """
    earlier = [(at, records) for at, records in history if began - length <= at <= began]
    return bool(earlier) and is_jump(behind, earlier)


def _judge_watermark(query: QueryState) -> QueryJudgement | None:
    """Return `watermark_stuck` if newer rows arrive and the watermark does not move."""
    stuck = query.watermark
    if stuck.value is None or query.batch_at is None or query.state == "idle":
        return None
    if stuck.value > query.batch_at:
        # A record from the future has moved it: it stands because all others are behind it.
        return None
    stood = query.batch_at - stuck.since
    is_behind_rows = query.newest is not None and stuck.newest is not None and query.newest > stuck.newest
    if (
        stuck.batches < STUCK_BATCHES
        or not is_behind_rows
        or stood <= max(STUCK, TRIGGERS * (query.interval or 0.0))
    ):
        return None
    at = timestamps.format_timestamp(stuck.value)[11:19]
    return QueryJudgement(
        "watermark_stuck",
        stuck.since,
        f"the watermark has been at {at} UTC for {format_seconds(stood)} although newer rows arrive: one of the "
        "sources is behind, and no later window becomes final",
    )


def _judge_spool(query: QueryState) -> QueryJudgement | None:
    """Return `spooling` while batches wait for a sink that refuses them."""
    if not query.spooled:
        return None
    sink, spool = next(iter(query.spooled.items()))
    others = f", and others for {len(query.spooled) - 1} more" if len(query.spooled) > 1 else ""
    count = f"{spool.batches:,} {'batch waits' if spool.batches == 1 else 'batches wait'}"
    return QueryJudgement("spooling", spool.since, f"{count} for {sink}{others}: {spool.reason}")


def describe_failure(data: Mapping[str, Any]) -> Failure:
    """Return why a query failed for good, from the event `query_failed`."""
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


def _place(record: list[str]) -> Place | None:
    """Parse the place of the topic's record that makes a batch fail, if there is one."""
    match = _RECORD.fullmatch(record[0]) if len(record) == 1 else None
    if match is None:
        return None
    return {"topic": match[2], "partition": int(match[1]), "offset": int(match[3])}


def format_failure(failure: Failure) -> str:
    """Return the reason as one sentence that begins with the record, if it is known."""
    prefix = f"{', '.join(failure['record'])}: " if failure["record"] else ""
    return f"{prefix}{failure['reason']}"


def format_seconds(seconds: float) -> str:
    """Format a length of time: `7.5 s`, `41 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min" + (f" {rounded % 60} s" if rounded % 60 else "")
    minutes = round(seconds / 60)
    if minutes < 1440:
        return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")
    hours = round(seconds / 3600)
    return f"{hours // 24} d" + (f" {hours % 24} h" if hours % 24 else "")
