"""Evaluate the alerts of a spec against the queries of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.dashboard.state import timestamps
from millstream.dashboard.state.query_verdict import is_lag_growing
from millstream.engine.events.event_messages import format_count
from millstream.spec.alert import AlertMeasure, Condition, parse_condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.dashboard.state import api_schema
    from millstream.dashboard.state.query_state import QueryState


@dataclass
class Alarms:
    """The alert conditions of a spec, and the time since each is met, by query."""

    conditions: tuple[Condition, ...] = ()
    met: dict[tuple[str, str], float] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Alarms:
        """Parse the alerts of a spec. Raises `ValueError` if a text is not an alert."""
        return cls(tuple(parse_condition(text) for text in texts))

    def evaluate(self, queries: Mapping[str, QueryState], now: float) -> list[api_schema.Alert]:
        """Evaluate each alert for each query at a time, with firing alerts first."""
        alerts = [
            self._evaluate(declared, query, now) for declared in self.conditions for query in queries.values()
        ]
        return sorted(alerts, key=lambda alert: not alert["firing"])

    def _evaluate(self, alert: Condition, query: QueryState, now: float) -> api_schema.Alert:
        value = alert_value(alert, query, now)
        # A query that has ended cannot be late, and the state of a failed query is already shown.
        has_ended = query.state in ("stopped", "failed")
        firing = not has_ended and value is not None and _is_above(alert, value)
        key = (alert.text, query.name)
        if firing:
            self.met.setdefault(key, now)
        else:
            self.met.pop(key, None)
        since = self.met.get(key)
        return {
            "name": alert.text,
            "query": query.name,
            "firing": firing,
            "since": None if since is None else timestamps.format_timestamp(since),
            "value": None if value is None else round(value, 1),
            "text": describe_value(alert, value),
        }


def _is_above(alert: Condition, value: float) -> bool:
    """Compare with the limit: `for 3 triggers` is met at three, `> 15 minutes` above fifteen."""
    met_at = alert.watch in (AlertMeasure.SILENCE, AlertMeasure.LAG_GROWING)
    return value >= alert.limit if met_at else value > alert.limit


def alert_value(alert: Condition, query: QueryState, now: float) -> float | None:
    """Return the figure that an alert watches, or None if the query has none."""
    match alert.watch:
        case AlertMeasure.WATERMARK_LAG:
            watermark = timestamps.parse_or_none(query.figures.get("watermark"))
            return None if watermark is None else now - watermark
        case AlertMeasure.FRESHNESS:
            return None if query.newest is None else now - query.newest
        case AlertMeasure.LAG:
            behind = query.behind_now()
            return None if behind is None else float(behind)
        case AlertMeasure.LAG_GROWING:
            return alert.limit if is_lag_growing(query, now, alert.limit) else 0.0
        case AlertMeasure.SILENCE:
            return query.triggers_without_progress(now)
        case AlertMeasure.DEAD_LETTERS:
            return float(query.counts["dead_letters"])
        case AlertMeasure.BATCH_TIME:
            return query.seconds()


def describe_value(alert: Condition, value: float | None) -> str:
    """Describe the current value in a sentence."""
    if value is None:
        return "no data yet"
    match alert.watch:
        case AlertMeasure.WATERMARK_LAG:
            return f"the watermark is {format_duration(value)} behind the clock"
        case AlertMeasure.FRESHNESS:
            return f"the newest event is {format_duration(value)} old"
        case AlertMeasure.LAG:
            return (
                f"{format_count(round(value), 'record')} {'is' if round(value) == 1 else 'are'} not yet read"
            )
        case AlertMeasure.LAG_GROWING:
            return f"the lag {'has grown' if value else 'has not grown'} for {format_duration(alert.limit)}"
        case AlertMeasure.SILENCE:
            return f"{value:.1f} triggers without progress"
        case AlertMeasure.DEAD_LETTERS:
            return (
                f"{format_count(round(value), 'record')} became "
                f"{'a dead letter' if round(value) == 1 else 'dead letters'}"
            )
        case AlertMeasure.BATCH_TIME:
            return f"the last batch took {format_duration(value)}"


def format_duration(seconds: float) -> str:
    """Format a duration in its largest unit."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if abs(seconds) >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
