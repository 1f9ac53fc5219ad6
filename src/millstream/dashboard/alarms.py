"""The alerts of a spec, held against the queries of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.dashboard import moments
from millstream.dashboard.lag import growing
from millstream.runtime.sentences import many
from millstream.spec.alert import Condition, Watch, condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.dashboard import shapes
    from millstream.dashboard.following import Followed


@dataclass
class Alarms:
    """The conditions of a spec, and since when each is met, by query."""

    conditions: tuple[Condition, ...] = ()
    met: dict[tuple[str, str], float] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Alarms:
        """The alerts that texts say. Raises `ValueError` for one that says none."""
        return cls(tuple(condition(text) for text in texts))

    def told(self, queries: Mapping[str, Followed], now: float) -> list[shapes.Alert]:
        """Each alert for each query at a time, those that fire first."""
        found = [self._one(one, query, now) for one in self.conditions for query in queries.values()]
        return sorted(found, key=lambda alert: not alert["firing"])

    def _one(self, alert: Condition, query: Followed, now: float) -> shapes.Alert:
        value = measured(alert, query, now)
        # A query that has ended is not late any more; one that failed is told of by its state.
        over = query.state in ("stopped", "failed")
        firing = not over and value is not None and _above(alert, value)
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
            "since": None if since is None else moments.text(since),
            "value": None if value is None else round(value, 1),
            "text": said(alert, value),
        }


def _above(alert: Condition, value: float) -> bool:
    """`for 3 triggers` is met at three; `> 15 minutes` above fifteen."""
    met_at = alert.watch in (Watch.SILENCE, Watch.LAG_GROWING)
    return value >= alert.limit if met_at else value > alert.limit


def measured(alert: Condition, query: Followed, now: float) -> float | None:
    """The figure that an alert looks at; None where the query has none."""
    match alert.watch:
        case Watch.WATERMARK_LAG:
            watermark = moments.perhaps(query.figures.get("watermark"))
            return None if watermark is None else now - watermark
        case Watch.FRESHNESS:
            return None if query.newest is None else now - query.newest
        case Watch.LAG:
            behind = query.behind_now()
            return None if behind is None else float(behind)
        case Watch.LAG_GROWING:
            return alert.limit if growing(query.behind, now, alert.limit) else 0.0
        case Watch.SILENCE:
            return query.triggers_silent(now) if query.heard else None
        case Watch.DEAD_LETTERS:
            return float(query.counts["dead_letters"])
        case Watch.BATCH_TIME:
            return query.seconds()


def said(alert: Condition, value: float | None) -> str:
    """What is the case, in a sentence."""
    if value is None:
        return "nothing is known yet"
    match alert.watch:
        case Watch.WATERMARK_LAG:
            return f"the watermark is {span(value)} behind the clock"
        case Watch.FRESHNESS:
            return f"the newest event is {span(value)} old"
        case Watch.LAG:
            return f"{many(round(value), 'record')} {'is' if round(value) == 1 else 'are'} not yet read"
        case Watch.LAG_GROWING:
            return f"the lag {'has grown' if value else 'has not grown'} for {span(alert.limit)}"
        case Watch.SILENCE:
            return f"{value:.1f} triggers without a sign of life"
        case Watch.DEAD_LETTERS:
            return f"{many(round(value), 'record')} {'was' if round(value) == 1 else 'were'} set aside"
        case Watch.BATCH_TIME:
            return f"the last batch took {span(value)}"


def span(seconds: float) -> str:
    """A length of time in words, in its largest unit."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if abs(seconds) >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
