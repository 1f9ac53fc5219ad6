"""The metrics of a run: their names, kinds, labels and meaning. docs/reference/metrics.md is made from this."""

from __future__ import annotations

from dataclasses import dataclass

Labels = tuple[str, ...]
_QUERY = ("pipeline", "query")


@dataclass(frozen=True)
class Metric:
    """One metric in Prometheus' convention: base units, `_total` for what only grows."""

    name: str
    kind: str
    labels: Labels
    what: str


METRICS = (
    Metric("millstream_up", "gauge", ("pipeline",), "1 while the run goes on and no query has given up."),
    Metric(
        "millstream_query_up",
        "gauge",
        _QUERY,
        "1 while the query is neither failed, stalled, retrying nor stopped.",
    ),
    Metric(
        "millstream_query_state",
        "gauge",
        (*_QUERY, "state"),
        "1 for the state that the query is in, 0 for the others.",
    ),
    Metric("millstream_query_restarts_total", "counter", _QUERY, "Starts of the query after its first one."),
    Metric("millstream_batches_total", "counter", _QUERY, "Batches that were committed."),
    Metric("millstream_rows_in_total", "counter", _QUERY, "Rows that Spark read."),
    Metric("millstream_rows_out_total", "counter", _QUERY, "Rows that were handed to the sinks."),
    Metric(
        "millstream_batch_seconds",
        "histogram",
        (*_QUERY, "phase"),
        "Duration of batches by phase; the phase `triggerExecution` is the whole.",
    ),
    Metric("millstream_last_batch_timestamp_seconds", "gauge", _QUERY, "When the last batch was committed."),
    Metric(
        "millstream_trigger_seconds",
        "gauge",
        _QUERY,
        "The interval of the query's trigger; absent where it has none.",
    ),
    Metric(
        "millstream_watermark_timestamp_seconds", "gauge", _QUERY, "The watermark; absent before the first."
    ),
    Metric(
        "millstream_newest_event_timestamp_seconds",
        "gauge",
        _QUERY,
        "The newest event time that was met; absent without event time.",
    ),
    Metric("millstream_state_rows", "gauge", _QUERY, "Rows that the query's operators keep."),
    Metric("millstream_state_bytes", "gauge", _QUERY, "Memory of that state, in bytes."),
    Metric(
        "millstream_rows_dropped_total",
        "counter",
        (*_QUERY, "reason"),
        "Rows that were left out: `late` behind the watermark, `malformed`, `expectation` broken.",
    ),
    Metric(
        "millstream_offsets_behind",
        "gauge",
        (*_QUERY, "topic", "partition"),
        "Records of a partition that the query has not yet read.",
    ),
    Metric(
        "millstream_dead_letters_total",
        "counter",
        (*_QUERY, "source", "reason"),
        "Records that were set aside.",
    ),
    Metric(
        "millstream_batches_waiting",
        "gauge",
        (*_QUERY, "sink"),
        "Batches that were set aside and wait for their sink; absent where none waits.",
    ),
    Metric(
        "millstream_alert_firing", "gauge", (*_QUERY, "alert"), "1 while an alert of the spec fires, else 0."
    ),
    Metric(
        "millstream_events_dropped_total",
        "counter",
        ("pipeline",),
        "Events of the run that the page lost because it could not keep up.",
    ),
    Metric(
        "millstream_exported_total",
        "counter",
        ("pipeline", "to"),
        "Spans (`opentelemetry`) or lineage events (`openlineage`) that a receiver took; absent where none is set.",
    ),
    Metric(
        "millstream_export_lost_total",
        "counter",
        ("pipeline", "to"),
        "What a receiver did not take, and events that it was too slow for.",
    ),
    Metric(
        "millstream_process_cpu_seconds_total",
        "counter",
        ("pipeline",),
        "CPU time of the Python process; Spark's JVM is not in it.",
    ),
)
"""Every metric, in the order in which they are told."""

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the histogram's buckets, in seconds: a phase that does nothing, a batch that takes minutes."""


def exported() -> set[str]:
    """The names that Prometheus sees: of a histogram its three series."""
    found = set()
    for one in METRICS:
        ends = ("_bucket", "_sum", "_count") if one.kind == "histogram" else ("",)
        found |= {one.name + end for end in ends}
    return found
