"""Compute the state of one query of a run from its events."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.dashboard.state import kafka_lag, timestamps
from millstream.dashboard.state.api_schema import LEVELS, State
from millstream.dashboard.state.batch_progress import RunningBatch, running_json, split_duration
from millstream.dashboard.state.query_verdict import (
    FIRST,
    OVERDUE,
    USUAL_TRIGGERS,
    describe_failure,
    format_failure,
    is_stalled,
    judge,
)
from millstream.dashboard.state.time_series import History, Series, plot_point, record_value

if TYPE_CHECKING:
    from millstream.dashboard.state import api_schema
    from millstream.engine.events.event_bus import Event

# States in which batches are committed.
READING: tuple[State, ...] = ("running", "slow", "falling_behind", "watermark_stuck", "spooling")
# States in which no rows flow. Neither do they in a stalled query, whatever its last event was.
INACTIVE: tuple[State, ...] = ("idle", "waiting", "retrying", "failed", "stopped")
# Spark reports an idle query at the first trigger that fires ten seconds after its last report. Reports lag a little.
IDLE_REPORT = 15.0
# The least number of records that are a backlog, however few arrive.
LEAST_BACKLOG = 100


@dataclass
class WatermarkProgress:
    """A value of the watermark, since when it holds, the newest event time then, and the batches with rows since."""

    value: float | None = None
    since: float = 0.0
    newest: float | None = None
    batches: int = 0


@dataclass
class Spool:
    """Batches that wait for one sink, since when and why."""

    batches: int
    since: float
    reason: str


@dataclass
class QueryState:
    """The state of one query. Times are seconds since 1970; counts are since the start of the run."""

    name: str
    trigger: str = ""
    interval: float | None = None
    """The seconds between the starts of two batches; None if the trigger has no such interval."""
    checkpoint_interval: float | None = None
    """The seconds between two commits of a continuous or real-time query."""
    sources: list[str | None] = field(default_factory=list)
    state: State = "starting"
    since: float = 0.0
    why: str = ""
    last_event_at: float = 0.0
    """The time of the last activity: a start, a batch, a part of a batch in a sink, or an idle event."""
    progress_at: float = 0.0
    """The time of the last progress: a batch, an idle event or an answer of a source. At first that of the start."""
    has_progressed: bool = False
    """Whether there has been progress since the first start."""
    figures: dict[str, Any] = field(default_factory=dict)
    is_flowing: bool = False
    """Whether the query has continued to read rows since the batch of the figures."""
    batch_at: float | None = None
    newest: float | None = None
    starts: int = 0
    over: int = 0
    """The number of consecutive batches that took longer than the trigger."""
    running: RunningBatch | None = None
    written: dict[str, float] = field(default_factory=dict)
    """The seconds that each sink took in the last committed batch."""
    watermark: WatermarkProgress = field(default_factory=WatermarkProgress)
    spooled: dict[str, Spool] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=kafka_lag.KEPT))
    topics: dict[kafka_lag.Key, kafka_lag.TopicLag] = field(default_factory=dict)
    behind: History = field(default_factory=list)
    left: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=kafka_lag.KEPT_COMMITS))
    """The time of each of the last commits, and how many records it left."""
    source_rates: dict[str | None, float] = field(default_factory=dict)
    series: Series = field(default_factory=Series)
    failure: api_schema.Failure | None = None

    def become(self, state: State, at: float, why: str = "") -> None:
        """Change the state; `since` is the time at which it began."""
        if state != self.state:
            self.since = at
        self.state, self.why = state, why

    def take(self, event: Event, at: float) -> None:
        """Update the state with one event of this query."""
        data = event.data
        self.since = self.since or at
        match event.event:
            case "query_started":
                self.starts += 1
                self._begin(at)
                self.sources = list(data.get("sources") or self.sources)
                self.trigger = (data.get("trigger") or self.trigger).removeprefix("processing_time ")
                # A run until caught up has another trigger than the spec. Earlier versions did not say so.
                self.interval = data.get("trigger_seconds", self.interval)
                self.checkpoint_interval = data.get("checkpoint_seconds")
                kafka_lag.record_committed(self.topics, self.sources, data.get("offsets") or [])
                self.running = None
                self.become("starting", at)
            case "batch_started":
                self.last_event_at = at
                self.running = RunningBatch(data["batch"], at, list(data.get("sinks") or ()))
            case "batch_committed":
                self._batch(data, at)
            case "totals":
                # Part of a log from which earlier batches may be missing.
                self.counts, self.starts = Counter(data["counts"]), data["starts"]
            case "batch_written":
                self.last_event_at = at
                if self.running is not None and self.running.number == data["batch"]:
                    self.running.written[data["sink"]] = data.get("seconds") or 0.0
            case "idle":
                self._progress(at)
                self._stand_still()
                self.become("idle", at)
            case "dead_letter":
                self.counts["dead_letters"] += data.get("records") or 0
            case "waiting":
                self._stand_still()
                self.become("waiting", at, f"no response from {data['source']}")
            case "going_on":
                self._progress(at)
                self.become("running", at)
            case "set_aside" | "still_spooled" | "delivered_later":
                self._spool(event.event, data, at)
            case "retry":
                self._begin(at)
                self._stand_still()
                self.become("retrying", at, f"{data['reason']}; next attempt in {data['wait_seconds']} s")
            case "query_failed":
                self.failure = describe_failure(data)
                self._stand_still()
                self.become("failed", at, format_failure(self.failure))
            case "query_stopped":
                self._stand_still()
                self.become("stopped", at, data.get("reason", ""))

    def _spool(self, event: str, data: dict[str, Any], at: float) -> None:
        """Record how many batches wait for a sink."""
        before, batches = self.spooled.get(data["sink"]), data.get("batches")
        if batches is None:
            # An event of an earlier version, or one at which the spool could not be listed.
            batches = (before.batches if before else 0) + (-1 if event == "delivered_later" else 1)
        if batches <= 0:
            self.spooled.pop(data["sink"], None)
        elif event != "delivered_later":
            since = before.since if before else timestamps.parse_or_none(data.get("since")) or at
            self.spooled[data["sink"]] = Spool(batches, since, data["reason"])
        elif before is not None:
            before.batches = batches

    def _begin(self, at: float) -> None:
        """Record a start, or its failure. Only the first one of a run counts as progress."""
        self.last_event_at = at
        if not self.progress_at or self.state == "stopped":
            self.progress_at, self.has_progressed = at, False

    def _progress(self, at: float) -> None:
        self.last_event_at, self.progress_at, self.has_progressed = at, at, True

    def _stand_still(self) -> None:
        """Record that no batch runs and no rows flow."""
        self.running, self.source_rates, self.is_flowing = None, {}, False
        self.rates.append(0.0)

    def _batch(self, data: dict[str, Any], at: float) -> None:
        self.figures, self.batch_at = data, at
        self._progress(at)
        if (newest := timestamps.parse_or_none(data["newest"])) is not None:
            # A record from the future is as new as the batch, and not for the rest of the run.
            newest = min(newest, at)
            self.newest = newest if self.newest is None else max(self.newest, newest)
        for name in ("rows_in", "rows_out", "late_rows", "malformed"):
            self.counts[name] += data[name] or 0
        self.counts["rows_removed"] += data.get("rows_removed") or 0
        self.counts["batches"] += 1
        self.counts["broken"] += sum(
            rows for counts in data.get("expectations", {}).values() for rows in counts.values()
        )
        began = timestamps.parse_or_none(data.get("began")) or at - (self.seconds() or 0.0)
        kafka_lag.record_offsets(self.topics, at, began, data["sources"], self.sources)
        self._record_lag(at)
        if (behind := self.behind_now()) is not None:
            self.left.append((at, behind))
        self._watermark(data, at)
        # Spark's reports lag a little behind the query, which may run its next batch by now.
        if self.running is not None and self.running.number <= data["batch"]:
            self.written = self.running.written if self.running.number == data["batch"] else {}
            self.running = None
        else:
            self.written = {}
        self.series.add(plot_point(at, data))
        busy = self.busy()
        self.over = self.over + 1 if busy is not None and busy > 1 else 0
        if self.state in ("stopped", "failed"):
            # Spark's listeners lag a little, so the figures of the last batch may arrive after the end.
            return
        self.rates.append(data["input_rate"] or 0.0)
        self.is_flowing = True
        self._of_sources(data)
        if self.over > 1 or (busy is not None and busy > OVERDUE):
            seconds = data["duration_ms"].get("triggerExecution", 0) / 1000
            verb = "a batch takes" if self.over > 1 else "the last batch took"
            self.become("slow", at, f"{verb} {seconds:.1f} s, but the trigger is {self.interval:g} s")
        else:
            self.become("running" if data["rows_in"] else "idle", at)

    def _of_sources(self, data: dict[str, Any]) -> None:
        """Compute each source's share of the input rate."""
        rows, rate = data["rows_in"], data["input_rate"]
        progress = data["sources"]
        if len(progress) == len(self.sources) and rows and rate is not None:
            self.source_rates = {}
            for name, source in zip(self.sources, progress, strict=True):
                share = rate * (source.get("numInputRows") or 0) / rows
                self.source_rates[name] = round(self.source_rates.get(name, 0.0) + share, 1)

    def _watermark(self, data: dict[str, Any], at: float) -> None:
        value = timestamps.parse_or_none(data.get("watermark"))
        if value != self.watermark.value:
            self.watermark = WatermarkProgress(value, at, self.newest)
        elif data["rows_in"]:
            self.watermark.batches += 1

    def _record_lag(self, at: float) -> None:
        behind = kafka_lag.total_behind(self.topics.values())
        if behind is not None:
            record_value(self.behind, at, behind)

    def observe_ends(self, source: str, ends: kafka_lag.PartitionOffsets, at: float) -> None:
        """Record where a source ends, as its broker said at a time; ignored if the query does not read it."""
        if source not in self.sources:
            return
        kafka_lag.record_ends(self.topics, at, source, ends)
        self._record_lag(at)

    def arrival_rate(self, source: str | None = None, now: float | None = None) -> float | None:
        """Return the records per second that arrived in the last minute, in all sources or one.

        None before two looks at the broker and, given the time, if the last look is no longer current.
        """
        return kafka_lag.total_rate(
            lag.arrival_rate(now) for (name, _), lag in self.topics.items() if source in (None, name)
        )

    def is_read_lately(self, now: float) -> bool:
        """Return whether the next batch may still be waiting for its trigger, or run as long as the last one did."""
        if self.batch_at is None or self.judged(now)[0] not in READING:
            return False
        return now - self.batch_at <= max(1.0, (self.interval or 0.0) + (self.seconds() or 0.0))

    def has_backlog(self) -> bool:
        """Return whether more records wait than arrive in two triggers, which is usual between two batches."""
        arrival_rate, seconds = self.arrival_rate(), self.seconds() or 0.0
        if arrival_rate is None:
            return False
        usual = USUAL_TRIGGERS * max(self.interval or seconds or 1.0, seconds) * arrival_rate
        return (self.behind_now() or 0) > max(usual, LEAST_BACKLOG)

    def is_backlog_shrinking(self) -> bool:
        """Return whether the last batches have left fewer and fewer records, as far as there were several."""
        return len(self.left) < 2 or self.left[-1][1] < self.left[0][1]

    def catch_up_seconds(self, now: float) -> float | None:
        """Return the estimated seconds until this query has read all records.

        None without a backlog, unless the backlog shrinks, and if one of the figures is not current.
        """
        if not self.has_backlog() or not self.is_read_lately(now):
            return None
        return kafka_lag.estimate_catch_up(self.left, self.topics.values(), now)

    def behind_at(self) -> float | None:
        """Return the time of the oldest end offset in the lag, or None if none is known."""
        return min(
            (lag.latest_at for lag in self.topics.values() if lag.behind is not None and lag.latest_at),
            default=None,
        )

    def silence(self, now: float) -> float:
        """Return the seconds since the last activity."""
        return max(0.0, now - self.last_event_at)

    def triggers_without_progress(self, now: float) -> float | None:
        """Return the time since the last progress in triggers, or None while the first batch may still take longer.

        It is 0 until Spark would have reported an idle query. Without an interval, a trigger counts as the time
        between two checkpoints or the last batch, at least 1 s.
        """
        seconds = max(0.0, now - self.progress_at)
        if not self.progress_at or (not self.has_progressed and seconds <= FIRST):
            return None
        trigger = self.interval or max(1.0, self.checkpoint_interval or 0.0, self.seconds() or 0.0)
        return seconds / trigger if seconds > IDLE_REPORT + trigger else 0.0

    def judged(self, now: float) -> tuple[State, float, str]:
        """Return state, since when, and why at a time."""
        return judge(self, now)

    def is_inactive(self, now: float) -> bool:
        """Return whether no rows flow. Before its first batch a query has no rates, and 0 at a later start."""
        if self.state == "starting" or (self.state == "running" and not self.is_flowing):
            return bool(self.figures)
        return self.state in INACTIVE or is_stalled(self, now)

    def seconds(self) -> float | None:
        """Return the duration of the last batch in seconds."""
        milliseconds = self.figures.get("duration_ms", {}).get("triggerExecution")
        return None if milliseconds is None else milliseconds / 1000

    def busy(self) -> float | None:
        """Return the last batch's duration divided by the trigger's interval."""
        seconds = self.seconds()
        return None if seconds is None or not self.interval else round(seconds / self.interval, 3)

    def load(self, now: float) -> float | None:
        """Return the duration of the last batch, or of the running one if that is longer, divided by the trigger."""
        running = (
            0.0 if self.running is None or not self.interval else (now - self.running.began) / self.interval
        )
        busy = self.busy()
        return busy if busy is not None and busy >= running else round(running, 3) or None

    def behind_now(self) -> int | None:
        """Return the number of Kafka records that are not read yet, or None without a partition."""
        return kafka_lag.total_behind(self.topics.values())

    def as_json(self, now: float) -> api_schema.QueryDetails:
        """Convert to the page's JSON."""
        state, since, reason = self.judged(now)
        figures, seconds = self.figures, self.seconds()
        out = figures.get("rows_out")
        watermark = timestamps.parse_or_none(figures.get("watermark"))
        is_inactive = self.is_inactive(now)
        interval = max(self.interval or 0.0, seconds or 0.0)
        return {
            "name": self.name,
            "state": state,
            "level": LEVELS[state],
            "since": timestamps.format_timestamp(since),
            "why": reason,
            "trigger": self.trigger,
            "trigger_seconds": self.interval,
            "batch": figures.get("batch"),
            "last_batch_at": None if self.batch_at is None else timestamps.format_timestamp(self.batch_at),
            "rows_in": self.counts["rows_in"],
            "rows_out": self.counts["rows_out"],
            "input_rate": 0.0 if is_inactive else figures.get("input_rate"),
            "processed_rate": 0.0 if is_inactive else figures.get("processed_rate"),
            "output_rate": 0.0
            if is_inactive
            else None
            if out is None or not interval
            else round(out / interval, 1),
            "batch_seconds": seconds,
            "busy": self.busy(),
            "watermark": figures.get("watermark"),
            "newest": None if self.newest is None else timestamps.format_timestamp(self.newest),
            "watermark_lag_seconds": None if watermark is None else round(now - watermark, 1),
            "state_rows": figures.get("state_rows", 0),
            "state_bytes": figures.get("state_bytes", 0),
            "late_rows": self.counts["late_rows"],
            "malformed": self.counts["malformed"],
            "dead_letters": self.counts["dead_letters"],
            "broken": self.counts["broken"],
            "rows_removed": self.counts["rows_removed"],
            "restarts": max(0, self.starts - 1),
            "behind": self.behind_now(),
            "behind_at": None if (seen := self.behind_at()) is None else timestamps.format_timestamp(seen),
            "arrival_rate": self.arrival_rate(now=now),
            "caught_up_in_seconds": self.catch_up_seconds(now),
            "running": running_json(self.running, now),
            "parts": split_duration(figures.get("duration_ms", {}), self.written, figures.get("state_ms", 0)),
            "rates": list(self.rates),
            "failure": self.failure,
        }
