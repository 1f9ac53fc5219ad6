"""Send batches as OpenTelemetry spans over OTLP: one span per batch, with its phases as children.

Imported only if an endpoint is configured, because OpenTelemetry's packages are the extra `otel`.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import Link, SpanContext, Status, StatusCode

from millstream import __version__
from millstream.dashboard.state import timestamps

if TYPE_CHECKING:
    from millstream.engine.events.event_bus import Event

# The phases in the order in which Spark runs them (MicroBatchExecution, 4.2). Spark reports how long each took and
# not when it began, so the spans are placed one after another.
ORDER = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")
WHOLE = "triggerExecution"
# Maximum number of `batch_written` events before their batch is committed; a batch has a few.
WRITTEN = 100
_FIGURES = {
    "rows_in": "rows.in",
    "rows_out": "rows.out",
    "late_rows": "rows.late",
    "malformed": "rows.malformed",
    "watermark": "watermark",
    "newest": "newest",
    "state_rows": "state.rows",
    "state_bytes": "state.bytes",
}


@dataclass
class _Known:
    """The data of a query between two of its batches."""

    start: SpanContext | None = None
    last_event_at: float = 0.0
    sources: list[str] = field(default_factory=list)
    sinks: list[str] = field(default_factory=list)
    writes: deque[Event] = field(default_factory=lambda: deque(maxlen=WRITTEN))


class _Ended(SpanProcessor):
    """Collects ended spans for the thread that sends them."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Collect an ended span."""
        self.spans.append(span)

    def take(self) -> list[ReadableSpan]:
        """Return the spans since the last call."""
        ended, self.spans = self.spans, []
        return ended


class Spans:
    """Creates spans from the events of one run. OpenTelemetry's variables set endpoint, headers and so on."""

    name = "opentelemetry"

    def __init__(self, pipeline: str, run: str) -> None:
        # Silenced because it logs each attempt with the address; the export queue logs losses once.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
        self._ended = _Ended()
        self._provider = TracerProvider(resource=create_resource(pipeline, run), shutdown_on_exit=False)
        self._provider.add_span_processor(self._ended)
        self._tracer = self._provider.get_tracer("millstream", __version__)
        self._exporter = OTLPSpanExporter()
        self._common = {"millstream.pipeline": pipeline, "millstream.run": run}
        self._queries: dict[str, _Known] = {}

    def convert(self, event: Event) -> list[ReadableSpan]:
        """Return the spans that an event ends."""
        if not event.query:
            return []
        at = timestamps.parse(event.at)
        query_state = self._queries.setdefault(event.query, _Known(last_event_at=at))
        match event.event:
            case "query_started":
                self._started(event, at, query_state)
            case "batch_written":
                query_state.writes.append(event)
            case "batch_committed":
                self._batch(event, at, query_state)
            case "retry" | "query_failed":
                self._end_failed_span(event, at, query_state)
        if event.event != "batch_written":
            query_state.last_event_at = at
        return self._ended.take()

    def send(self, messages: list[ReadableSpan]) -> None:
        """Export spans. Raises `OSError` if they are not accepted."""
        if self._exporter.export(messages) is not SpanExportResult.SUCCESS:
            raise ConnectionError("the spans were not accepted")
        messages.clear()

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]
        self._provider.shutdown()

    def _started(self, event: Event, at: float, query_state: _Known) -> None:
        data = event.data
        query_state.sources = [source for source in data.get("sources") or () if source]
        query_state.sinks = list(data.get("sinks") or ())
        query_state.writes.clear()
        span = self._tracer.start_span(
            f"{event.query} start",
            context=trace.set_span_in_context(trace.INVALID_SPAN),
            attributes={
                **self._of(event, query_state),
                "millstream.query.id": str(data.get("id", "")),
                "millstream.query.run_id": str(data.get("run_id", "")),
                "millstream.trigger": str(data.get("trigger", "")),
            },
            start_time=_nanos(at),
        )
        span.end(_nanos(at))
        query_state.start = span.get_span_context()

    def _batch(self, event: Event, at: float, query_state: _Known) -> None:
        data = event.data
        durations = {name: ms / 1000 for name, ms in data["duration_ms"].items()}
        total = durations.pop(WHOLE, sum(durations.values()))
        start = timestamps.parse_or_none(data.get("began"))
        start = at - total if start is None else start
        figures = {f"millstream.{name}": data.get(key) for key, name in _FIGURES.items()}
        span = self._root(event, query_state, start, {**figures, "millstream.batch": data["batch"]})
        parent, phase_start = trace.set_span_in_context(span), start
        for phase in (*ORDER, *sorted(durations.keys() - set(ORDER))):
            # Phases without a duration did not run.
            if seconds := durations.get(phase):
                child = self._tracer.start_span(phase, context=parent, start_time=_nanos(phase_start))
                phase_start += seconds
                child.end(_nanos(phase_start))
        for write_event in [
            write_event for write_event in query_state.writes if write_event.data["batch"] <= data["batch"]
        ]:
            query_state.writes.remove(write_event)
            if write_event.data["batch"] == data["batch"]:
                attributes = {
                    "millstream.sink": write_event.data["sink"],
                    "millstream.skipped": bool(write_event.data["skipped"]),
                }
                rows = write_event.data.get("rows")
                attributes |= {} if rows is None else {"millstream.rows": rows}
                span.add_event("written", attributes, _nanos(timestamps.parse(write_event.at)))
        span.end(_nanos(start + total))

    def _end_failed_span(self, event: Event, at: float, query_state: _Known) -> None:
        """Create the span of a failed batch. It begins at the last event, because its progress is unknown."""
        data = event.data
        span = self._root(
            event, query_state, query_state.last_event_at, {"millstream.batch": data.get("batch")}
        )
        kind = str(data.get("cause", "outage"))
        attributes = {"exception.type": kind, "exception.message": data["reason"]}
        if data.get("record"):
            attributes["millstream.record"] = ", ".join(data["record"])
        span.add_event("exception", attributes, _nanos(at))
        span.set_attribute("error.type", kind)
        span.set_status(Status(StatusCode.ERROR, data["reason"]))
        span.end(_nanos(at))
        query_state.writes.clear()

    def _root(self, event: Event, query_state: _Known, start: float, figures: dict[str, Any]) -> trace.Span:
        """Start the span of a batch as a separate trace, with a link to the start of its query."""
        return self._tracer.start_span(
            f"{event.query} batch",
            context=trace.set_span_in_context(trace.INVALID_SPAN),
            attributes={
                **self._of(event, query_state),
                **{name: value for name, value in figures.items() if value is not None},
            },
            links=[Link(query_state.start)] if query_state.start else [],
            start_time=_nanos(start),
        )

    def _of(self, event: Event, query_state: _Known) -> dict[str, Any]:
        return {
            **self._common,
            "millstream.query": event.query,
            "millstream.sources": query_state.sources,
            "millstream.sinks": query_state.sinks,
        }


def create_resource(pipeline: str, run: str) -> Resource:
    """Return the resource. The pipeline is the service, unless OpenTelemetry's variables name another."""
    has_name = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    service = {} if has_name else {"service.name": pipeline}
    return Resource.create({**service, "service.version": __version__, "service.instance.id": run})


def _nanos(seconds: float) -> int:
    return round(seconds * 1e9)
