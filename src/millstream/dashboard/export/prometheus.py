"""Write the metrics of a run in Prometheus' text format."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from millstream.dashboard.export.metric_definitions import BUCKETS, METRICS
from millstream.dashboard.export.spark_metrics import ENGINE
from millstream.dashboard.export.spark_metrics import spark_samples as spark_samples
from millstream.dashboard.state import api_schema, timestamps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from millstream.dashboard.export.exporter import ExportQueue
    from millstream.engine.events.event_bus import Event

CONTENT = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[str, dict[str, str], float]
"""The suffix of the metric's name, the labels, and the value."""
PartitionReader = Callable[[str], Sequence[api_schema.PartitionLag] | None]
# Partitions, over all queries, up to which each has a time series of its own; beyond it each topic has one.
MOST_PARTITIONS = 2_000


@dataclass
class EventCounters:
    """Counters over the events of this process, without earlier runs."""

    batches: Counter[str] = field(default_factory=Counter)
    sums: dict[tuple[str, str], float] = field(default_factory=dict)
    buckets: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """The number of batches in each bucket, by query and phase. The last bucket is above all bounds."""

    def take(self, event: Event) -> None:
        """Count one event."""
        if event.event != "batch_committed":
            return
        self.batches[event.query] += 1
        for phase, milliseconds in event.data["duration_ms"].items():
            key, seconds = (event.query, phase), milliseconds / 1000
            self.sums[key] = self.sums.get(key, 0.0) + seconds
            counted = self.buckets.setdefault(key, [0] * (len(BUCKETS) + 1))
            counted[bisect_left(BUCKETS, seconds)] += 1


def format_metrics(
    state: api_schema.Document,
    partitions: PartitionReader,
    counts: EventCounters,
    dropped: int,
    outward: Iterable[ExportQueue] = (),
    engine: Mapping[str, float] = MappingProxyType({}),
) -> str:
    """Return all metrics with their samples, each name once. A metric without samples has only its header.

    `partitions` returns those that a query reads.
    """
    pipeline = {"pipeline": state["run"]["pipeline"]}
    samples = _samples(state, counts, dropped)
    samples["millstream_offsets_behind"] = [*_offsets_behind(state, partitions)]
    for exporter in outward:
        samples["millstream_exported_total"].append(("", {"to": exporter.name}, exporter.sent_count))
        samples["millstream_export_lost_total"].append(("", {"to": exporter.name}, exporter.lost_count))
    metrics = [*METRICS]
    if engine:
        metrics += [exporter.metric for exporter in ENGINE]
        for name, sample in spark_samples(engine):
            samples.setdefault(name, []).append(sample)
    lines: list[str] = []
    for metric in metrics:
        lines += [f"# HELP {metric.name} {_plain(metric.what)}", f"# TYPE {metric.name} {metric.kind}"]
        for suffix, labels, value in samples.get(metric.name, []):
            pairs = ",".join(
                f'{name}="{_escaped(exporter)}"' for name, exporter in {**pipeline, **labels}.items()
            )
            lines.append(f"{metric.name}{suffix}{{{pairs}}} {_number(value)}")
    return "\n".join(lines) + "\n"


def _samples(state: api_schema.Document, counts: EventCounters, dropped: int) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {metric.name: [] for metric in METRICS}

    def add(name: str, value: float | None, **labels: str) -> None:
        if value is not None:
            samples[f"millstream_{name}"].append(("", labels, value))

    add("up", float(state["run"]["ended"] is None and state["state"] != "failed"))
    add("events_dropped_total", dropped)
    add("process_cpu_seconds_total", time.process_time())
    for files in state["open_files"]:
        add("open_files", files["open"], process=files["process"])
        add("open_files_max", files["max"], process=files["process"])
    for query in state["queries"]:
        name = query["name"]
        add("query_up", float(query["level"] != "off" and query["state"] not in _DOWN), query=name)
        for state_name in get_args(api_schema.State):
            add("query_state", float(query["state"] == state_name), query=name, state=state_name)
        add("query_restarts_total", query["restarts"], query=name)
        add("batches_total", counts.batches[name], query=name)
        add("rows_in_total", query["rows_in"], query=name)
        add("rows_out_total", query["rows_out"], query=name)
        add("last_batch_timestamp_seconds", timestamps.parse_or_none(query["last_batch_at"]), query=name)
        add("trigger_seconds", query["trigger_seconds"], query=name)
        add("watermark_timestamp_seconds", timestamps.parse_or_none(query["watermark"]), query=name)
        add("newest_event_timestamp_seconds", timestamps.parse_or_none(query["newest"]), query=name)
        add("state_rows", query["state_rows"], query=name)
        add("state_bytes", query["state_bytes"], query=name)
        for reason, field_name in (
            ("late", "late_rows"),
            ("malformed", "malformed"),
            ("expectation", "rows_removed"),
        ):
            value: Any = query[field_name]  # type: ignore[literal-required]
            add("rows_dropped_total", value, query=name, reason=reason)
        add("expectation_failures_total", query["broken"], query=name)
    for (name, phase), counted in counts.buckets.items():
        samples["millstream_batch_seconds"] += _histogram(name, phase, counted, counts.sums[name, phase])
    for letter in state["letters"]["reasons"]:
        labels = {"query": letter["query"], "source": letter["source"], "reason": letter["reason"]}
        add("dead_letters_total", letter["records"], **labels)
    for waiting in state["letters"]["set_aside"]:
        add("batches_waiting", waiting["batches"], query=waiting["query"], sink=waiting["sink"])
    for alert in state["alerts"]:
        add("alert_firing", float(alert["firing"]), query=alert["query"], alert=alert["name"])
    return samples


def _offsets_behind(state: api_schema.Document, partitions: PartitionReader) -> Iterator[Sample]:
    """Yield the records behind of each partition or, where a run reads very many, of each topic."""
    if sum(lag["partitions"] for lag in state["lag"]) > MOST_PARTITIONS:
        for lag in state["lag"]:
            if lag["behind"] is not None:
                labels = {"query": lag["query"], "source": lag["source"], "topic": lag["topic"]}
                yield "", labels, lag["behind"]
        return
    for query in dict.fromkeys(lag["query"] for lag in state["lag"]):
        for row in partitions(query) or ():
            if row["behind"] is not None:
                labels = {"query": query, "source": row["source"], "topic": row["topic"]}
                yield "", {**labels, "partition": str(row["partition"])}, row["behind"]


_DOWN = ("failed", "stalled", "retrying")


def _histogram(query: str, phase: str, counted: list[int], total: float) -> Iterator[Sample]:
    """Yield the cumulative buckets of one phase, its sum and its count."""
    labels, so_far = {"query": query, "phase": phase}, 0
    for bound, number in zip((*map(str, BUCKETS), "+Inf"), counted, strict=True):
        so_far += number
        yield "_bucket", {**labels, "le": bound}, so_far
    yield "_sum", labels, round(total, 6)
    yield "_count", labels, so_far


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _escaped(text: str) -> str:
    r"""Escape a label's value, in which `\`, `"` and line ends are special."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _plain(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
