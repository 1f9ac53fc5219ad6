"""The metrics of a run in Prometheus' text format."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from millstream.dashboard import moments, shapes
from millstream.dashboard.engine import ENGINE
from millstream.dashboard.engine import samples as spark_samples
from millstream.dashboard.names import BUCKETS, METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from millstream.dashboard.outward import Outward
    from millstream.runtime.events import Event

CONTENT = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[str, dict[str, str], float]
"""What stands behind the metric's name, labels, value."""


@dataclass
class Counts:
    """What only grows, from the events of this process; a run before this one is not in it."""

    batches: Counter[str] = field(default_factory=Counter)
    sums: dict[tuple[str, str], float] = field(default_factory=dict)
    buckets: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """By query and phase, the batches in each bucket; the last is what is above all bounds."""

    def take(self, event: Event) -> None:
        """Take in one event."""
        if event.event != "batch_committed":
            return
        self.batches[event.query] += 1
        for phase, milliseconds in event.data["duration_ms"].items():
            key, seconds = (event.query, phase), milliseconds / 1000
            self.sums[key] = self.sums.get(key, 0.0) + seconds
            counted = self.buckets.setdefault(key, [0] * (len(BUCKETS) + 1))
            counted[bisect_left(BUCKETS, seconds)] += 1


def text(
    state: shapes.Document,
    counts: Counts,
    dropped: int,
    outward: Iterable[Outward] = (),
    engine: Mapping[str, float] = MappingProxyType({}),
) -> str:
    """Every metric with its samples, each name once; those without a sample have their head alone."""
    pipeline = {"pipeline": state["run"]["pipeline"]}
    samples = _samples(state, counts, dropped)
    for one in outward:
        samples["millstream_exported_total"].append(("", {"to": one.name}, one.sent))
        samples["millstream_export_lost_total"].append(("", {"to": one.name}, one.lost))
    told = [*METRICS]
    if engine:
        told += [one.metric for one in ENGINE]
        for name, sample in spark_samples(engine):
            samples.setdefault(name, []).append(sample)
    lines: list[str] = []
    for metric in told:
        lines += [f"# HELP {metric.name} {_plain(metric.what)}", f"# TYPE {metric.name} {metric.kind}"]
        for end, labels, value in samples.get(metric.name, []):
            pairs = ",".join(f'{name}="{_escaped(one)}"' for name, one in {**pipeline, **labels}.items())
            lines.append(f"{metric.name}{end}{{{pairs}}} {_number(value)}")
    return "\n".join(lines) + "\n"


def _samples(state: shapes.Document, counts: Counts, dropped: int) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {metric.name: [] for metric in METRICS}

    def add(name: str, value: float | None, **labels: str) -> None:
        if value is not None:
            found[f"millstream_{name}"].append(("", labels, value))

    add("up", float(state["run"]["ended"] is None and state["state"] != "failed"))
    add("events_dropped_total", dropped)
    add("process_cpu_seconds_total", time.process_time())
    for query in state["queries"]:
        name = query["name"]
        add("query_up", float(query["level"] != "off" and query["state"] not in _DOWN), query=name)
        for one in get_args(shapes.State):
            add("query_state", float(query["state"] == one), query=name, state=one)
        add("query_restarts_total", query["restarts"], query=name)
        add("batches_total", counts.batches[name], query=name)
        add("rows_in_total", query["rows_in"], query=name)
        add("rows_out_total", query["rows_out"], query=name)
        add("last_batch_timestamp_seconds", moments.perhaps(query["last_batch_at"]), query=name)
        add("trigger_seconds", query["trigger_seconds"], query=name)
        add("watermark_timestamp_seconds", moments.perhaps(query["watermark"]), query=name)
        add("newest_event_timestamp_seconds", moments.perhaps(query["newest"]), query=name)
        add("state_rows", query["state_rows"], query=name)
        add("state_bytes", query["state_bytes"], query=name)
        for reason, field_name in (
            ("late", "late_rows"),
            ("malformed", "malformed"),
            ("expectation", "broken"),
        ):
            value: Any = query[field_name]  # type: ignore[literal-required]
            add("rows_dropped_total", value, query=name, reason=reason)
    for (name, phase), counted in counts.buckets.items():
        found["millstream_batch_seconds"] += _histogram(name, phase, counted, counts.sums[name, phase])
    for row in state["lag"]:
        add(
            "offsets_behind",
            row["behind"],
            query=row["query"],
            topic=row["topic"],
            partition=row["partition"],
        )
    for letter in state["letters"]["reasons"]:
        labels = {"query": letter["query"], "source": letter["source"], "reason": letter["reason"]}
        add("dead_letters_total", letter["records"], **labels)
    for waiting in state["letters"]["set_aside"]:
        add("batches_waiting", waiting["batches"], query=waiting["query"], sink=waiting["sink"])
    for alert in state["alerts"]:
        add("alert_firing", float(alert["firing"]), query=alert["query"], alert=alert["name"])
    return found


_DOWN = ("failed", "stalled", "retrying")


def _histogram(query: str, phase: str, counted: list[int], total: float) -> Iterator[Sample]:
    """The cumulative buckets of one phase, its sum and its count."""
    labels, so_far = {"query": query, "phase": phase}, 0
    for bound, number in zip((*map(str, BUCKETS), "+Inf"), counted, strict=True):
        so_far += number
        yield "_bucket", {**labels, "le": bound}, so_far
    yield "_sum", labels, round(total, 6)
    yield "_count", labels, so_far


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _escaped(text: str) -> str:
    r"""A label's value: `\`, `"` and line ends would end it."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _plain(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
