"""Define the metrics of a run: names, kinds, labels and meaning. docs/reference/metrics.md is generated from them."""

from __future__ import annotations

from dataclasses import dataclass

Labels = tuple[str, ...]
_QUERY = ("pipeline", "query")


@dataclass(frozen=True)
class Metric:
    """One metric by the conventions of Prometheus: base units, and `_total` for counters."""

    name: str
    kind: str
    labels: Labels
    what: str


METRICS = (
    Metric(
        "millstream_up",
        "gauge",
        ("pipeline",),
        "1 while the run is active, unless a query has failed and is not restarted.",
    ),
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
        "1 for the current state of the query, 0 for the others.",
    ),
    Metric("millstream_query_restarts_total", "counter", _QUERY, "Restarts of the query."),
    Metric("millstream_batches_total", "counter", _QUERY, "Committed batches."),
    Metric("millstream_rows_in_total", "counter", _QUERY, "Rows that Spark read."),
    Metric("millstream_rows_out_total", "counter", _QUERY, "Rows that were passed to the sinks."),
    Metric(
        "millstream_batch_seconds",
        "histogram",
        (*_QUERY, "phase"),
        "Duration of batches by phase; the phase `triggerExecution` is the whole batch.",
    ),
    Metric(
        "millstream_last_batch_timestamp_seconds",
        "gauge",
        _QUERY,
        "Time at which the last batch was committed.",
    ),
    Metric(
        "millstream_trigger_seconds",
        "gauge",
        _QUERY,
        "Interval of the query's trigger; absent if it has none.",
    ),
    Metric(
        "millstream_watermark_timestamp_seconds", "gauge", _QUERY, "Watermark; absent before the first one."
    ),
    Metric(
        "millstream_newest_event_timestamp_seconds",
        "gauge",
        _QUERY,
        "Newest event time so far; absent without event time.",
    ),
    Metric("millstream_state_rows", "gauge", _QUERY, "Rows in the state of the query's operators."),
    Metric(
        "millstream_state_bytes",
        "gauge",
        _QUERY,
        "Memory used by the state of the query's operators, in bytes.",
    ),
    Metric(
        "millstream_rows_dropped_total",
        "counter",
        (*_QUERY, "reason"),
        "Dropped rows by reason: `late` (behind the watermark), `malformed`, `expectation` (broken, with `drop` or "
        "`dead_letter`).",
    ),
    Metric(
        "millstream_expectation_failures_total",
        "counter",
        _QUERY,
        "Rows that broke an expectation, also those that were not dropped; once for each expectation.",
    ),
    Metric(
        "millstream_offsets_behind",
        "gauge",
        (*_QUERY, "source", "topic", "partition"),
        "Records of a partition that the query has not read yet; of a whole topic if queries read more than 2,000 "
        "partitions.",
    ),
    Metric(
        "millstream_dead_letters_total",
        "counter",
        (*_QUERY, "source", "reason"),
        "Records that became dead letters.",
    ),
    Metric(
        "millstream_batches_waiting",
        "gauge",
        (*_QUERY, "sink"),
        "Spooled batches that wait for their sink, also those of earlier runs; absent if there are none.",
    ),
    Metric(
        "millstream_alert_firing",
        "gauge",
        (*_QUERY, "alert"),
        "1 while an alert of the spec is firing, else 0.",
    ),
    Metric(
        "millstream_events_dropped_total",
        "counter",
        ("pipeline",),
        "Events of the run that the page dropped because it could not keep up.",
    ),
    Metric(
        "millstream_exported_total",
        "counter",
        ("pipeline", "to"),
        "Spans (`opentelemetry`) or lineage events (`openlineage`) that a receiver accepted; absent if none is set.",
    ),
    Metric(
        "millstream_export_lost_total",
        "counter",
        ("pipeline", "to"),
        "Spans and lineage events that were lost: rejected by the receiver, or dropped because it was too slow.",
    ),
    Metric(
        "millstream_open_files",
        "gauge",
        ("pipeline", "process"),
        "Open files and sockets of Spark's JVM (`jvm`) and of the Python process (`python`); on Linux only.",
    ),
    Metric(
        "millstream_open_files_max",
        "gauge",
        ("pipeline", "process"),
        "Maximum number of files that the process may open; for a JVM that leaves sockets open, at most the "
        "number of local ports.",
    ),
    Metric(
        "millstream_process_cpu_seconds_total",
        "counter",
        ("pipeline",),
        "CPU time of the Python process, without Spark's JVM.",
    ),
)
"""All metrics, in the order of the output."""

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the histogram's buckets, in seconds: from an empty phase to a batch of minutes."""


def series_names() -> set[str]:
    """Return the names of all series in Prometheus; a histogram has three."""
    names = set()
    for metric in METRICS:
        suffixes = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
        names |= {metric.name + end for end in suffixes}
    return names
