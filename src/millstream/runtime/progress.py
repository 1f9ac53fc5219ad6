"""Spark's progress of each batch, as an event of the run."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from millstream.runtime.expect import metric

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

    from millstream.runtime.events import Events

ROWS_OUT = "millstream:out"
_EPOCH = "1970-01-01T00:00:00.000Z"


class Listener(StreamingQueryListener):
    """Tells a `batch_committed` event for each progress report. Spark calls it on its listener thread."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._names: dict[str, str] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to tell, the supervisor does; but an idle query is known by its run alone."""
        if event.name:
            self._names[str(event.runId)] = event.name

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A batch was committed."""
        report = json.loads(event.progress.json)
        if report.get("name"):
            self._events.tell("batch_committed", report["name"], **figures(report))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing came for ten seconds: an idle query has no figures, and is alive."""
        if name := self._names.get(str(event.runId)):
            self._events.tell("idle", name)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Nothing to tell: the supervisor does, with the reason."""
        self._names.pop(str(event.runId), None)


def figures(report: dict[str, Any]) -> dict[str, Any]:
    """What is worth telling of a progress report.

    `began` is when its trigger fired, in ISO-8601.
    `rows_in` and `rows_out` are rows; the rates rows a second; `duration_ms` the batch's phases in
    milliseconds; `expectations` the rows that broke each, by source or view; `watermark` and `newest`
    ISO-8601 times; `state_rows` and `state_bytes` sums over operators; `late_rows` the rows that stateful
    operators dropped in this batch.
    """
    operators = report.get("stateOperators", [])
    watermark = report.get("eventTime", {}).get("watermark")
    observed = report.get("observedMetrics") or {}
    return {
        "batch": report["batchId"],
        "began": report.get("timestamp"),
        "rows_in": report.get("numInputRows", 0),
        "rows_out": (observed.get(ROWS_OUT) or {}).get("rows"),
        "input_rate": _rate(report.get("inputRowsPerSecond")),
        "processed_rate": _rate(report.get("processedRowsPerSecond")),
        "duration_ms": report.get("durationMs", {}),
        "watermark": None if watermark in (None, _EPOCH) else watermark,
        "newest": max(
            (_iso(told["newest"]) for told in observed.values() if told and told.get("newest")), default=None
        ),
        "malformed": sum(told.get("malformed") or 0 for told in observed.values() if told),
        "expectations": _expectations(observed),
        "state_rows": sum(operator.get("numRowsTotal", 0) for operator in operators),
        "state_bytes": sum(operator.get("memoryUsedBytes", 0) for operator in operators),
        "late_rows": sum(operator.get("numRowsDroppedByWatermark", 0) for operator in operators),
        "sources": [
            {
                key: source.get(key)
                for key in ("description", "startOffset", "endOffset", "latestOffset", "numInputRows")
            }
            for source in report.get("sources", [])
        ],
    }


def _expectations(observed: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Rows that broke each expectation, by source or view and its name."""
    prefix = metric("")
    return {
        name.removeprefix(prefix): {one: rows for one, rows in told.items() if one.isidentifier()}
        for name, told in observed.items()
        if told and name.startswith(prefix)
    }


def _iso(text: str) -> str:
    """A time as Spark prints it in a session at UTC, in ISO form."""
    return text if text.endswith("Z") else text.replace(" ", "T") + "Z"


def lag_seconds(watermark: str | None) -> float | None:
    """How far the watermark is behind the clock, in seconds."""
    if watermark is None:
        return None
    return (datetime.now(UTC) - datetime.fromisoformat(watermark.replace("Z", "+00:00"))).total_seconds()


def _rate(value: Any) -> float | None:
    """A rate, or None for the infinities and NaN that Spark reports for empty batches."""
    return (
        round(float(value), 1)
        if isinstance(value, int | float) and value == value and abs(value) < 1e15
        else None
    )
