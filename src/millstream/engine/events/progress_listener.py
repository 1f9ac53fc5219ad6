"""Turn Spark's progress report of each batch into an event of the run."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from millstream.frames.decode import source_metric_name
from millstream.frames.expectations import REMOVED, metric_name

if TYPE_CHECKING:
    from millstream.engine.events.event_bus import EventBus
    from millstream.engine.state_memory_watch import StateMemoryWatch

ROWS_OUT = "millstream:out"
_EPOCH = "1970-01-01T00:00:00.000Z"


class Listener:
    """Emits a `batch_committed` event for each progress report. Spark calls it on its listener thread.

    Events are Spark's own. PySpark's listener would copy each of them to Python, in hundreds of calls to the JVM.
    """

    def __init__(self, events: EventBus, states: StateMemoryWatch) -> None:
        self._events, self._states = events, states
        self._names: dict[str, str] = {}

    def onQueryStarted(self, event: Any) -> None:
        """Remember the query's name, because an idle event has only a run id. The supervisor emits the start."""
        if name := event.name():
            self._names[event.runId().toString()] = name

    def onQueryProgress(self, event: Any) -> None:
        """Emit an event for a committed batch."""
        report = json.loads(event.progress().json())
        if report.get("name"):
            metrics = extract_metrics(report)
            self._events.emit("batch_committed", report["name"], **metrics)
            self._states.observe(report["name"], metrics)

    def onQueryIdle(self, event: Any) -> None:
        """Emit an event for a query without input for ten seconds. An idle query has no metrics, but is alive."""
        if name := self._names.get(event.runId().toString()):
            self._events.emit("idle", name)

    def onQueryTerminated(self, event: Any) -> None:
        """Forget the query's name. The supervisor emits the end, with its reason."""
        if name := self._names.pop(event.runId().toString(), None):
            self._states.forget(name)

    class Java:
        """The Java interface, for Py4J."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def extract_metrics(report: dict[str, Any]) -> dict[str, Any]:
    """Extract the data of a `batch_committed` event from a progress report.

    `began` is the time at which the trigger fired, in ISO-8601. `rows_in` and `rows_out` are numbers of rows, and the
    rates are rows per second. `duration_ms` has the batch's phases in milliseconds. `expectations` counts the rows
    that failed each expectation, by source or view, and `rows_removed` are those of them that were dropped or became
    dead letters. `watermark` and `newest` are ISO-8601 times. `state_rows` and
    `state_bytes` are sums over operators, and `state_store` is in_memory or rocksdb; `state_ms` is the time in
    milliseconds that all tasks together spent in the state store. `late_rows` counts the rows that stateful operators
    dropped in this batch.
    """
    operators = report.get("stateOperators", [])
    watermark = report.get("eventTime", {}).get("watermark")
    observed = report.get("observedMetrics") or {}
    source_metrics = _select_metrics(observed, source_metric_name(""))
    expectation_metrics = _select_metrics(observed, metric_name(""))
    return {
        "batch": report["batchId"],
        "began": report.get("timestamp"),
        "rows_in": report.get("numInputRows", 0),
        "rows_out": (observed.get(ROWS_OUT) or {}).get("rows"),
        "input_rate": _finite_rate(report.get("inputRowsPerSecond")),
        "processed_rate": _finite_rate(report.get("processedRowsPerSecond")),
        "duration_ms": report.get("durationMs", {}),
        "watermark": None if watermark in (None, _EPOCH) else watermark,
        "newest": _find_newest(source_metrics),
        "malformed": sum(metrics.get("malformed") or 0 for metrics in source_metrics),
        "expectations": _count_failures(observed),
        "rows_removed": sum(metrics.get(REMOVED) or 0 for metrics in expectation_metrics),
        "state_rows": sum(operator.get("numRowsTotal", 0) for operator in operators),
        "state_bytes": sum(operator.get("memoryUsedBytes", 0) for operator in operators),
        "state_store": _find_state_store(operators),
        "state_ms": sum(_state_milliseconds(operator) for operator in operators),
        "late_rows": sum(operator.get("numRowsDroppedByWatermark", 0) for operator in operators),
        "sources": [
            {
                key: source.get(key)
                for key in ("description", "startOffset", "endOffset", "latestOffset", "numInputRows")
            }
            for source in report.get("sources", [])
        ],
    }


def _select_metrics(observed: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the metrics whose names begin with a prefix. A view may observe the same columns under other names."""
    return [metrics for name, metrics in observed.items() if metrics and name.startswith(prefix)]


def _find_state_store(operators: list[dict[str, Any]]) -> str | None:
    """Return where the state is: `in_memory`, `rocksdb`, or None without state. A query has one state store."""
    names = {name for operator in operators for name in operator.get("customMetrics") or ()}
    if any(name.startswith("rocksdb") for name in names):
        return "rocksdb"
    return "in_memory" if operators else None


def _state_milliseconds(operator: dict[str, Any]) -> int:
    """Return the time in milliseconds that the tasks of a stateful operator spent in its state store."""
    names = ("allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs")
    return sum(int(operator.get(name) or 0) for name in names)


def _count_failures(observed: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Count the rows that failed each expectation, by source or view and the expectation's name."""
    prefix = metric_name("")
    return {
        name.removeprefix(prefix): {
            expectation: rows for expectation, rows in metrics.items() if expectation.isidentifier()
        }
        for name, metrics in observed.items()
        if metrics and name.startswith(prefix)
    }


def _find_newest(source_metrics: list[dict[str, Any]]) -> str | None:
    """Return the newest event time of all sources, or None without one or if it is after the year 9999."""
    newest = [metrics["newest"] for metrics in source_metrics if metrics.get("newest") is not None]
    try:
        return _to_iso(max(newest)) if newest else None
    except OverflowError:
        return None


def _to_iso(micros: int) -> str:
    """Convert microseconds since 1970 to ISO-8601."""
    return (datetime(1970, 1, 1) + timedelta(microseconds=micros)).isoformat() + "Z"  # noqa: DTZ001 - UTC


def lag_seconds(watermark: str | None) -> float | None:
    """Return how far the watermark is behind the clock, in seconds."""
    if watermark is None:
        return None
    return (datetime.now(UTC) - datetime.fromisoformat(watermark.replace("Z", "+00:00"))).total_seconds()


def _finite_rate(value: Any) -> float | None:
    """Return a rate, or None for the infinities and NaN that Spark reports for empty batches."""
    return (
        round(float(value), 1)
        if isinstance(value, int | float) and value == value and abs(value) < 1e15
        else None
    )
