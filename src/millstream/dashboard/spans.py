"""Batches as OpenTelemetry spans: one a batch with its phases below it, sent over OTLP.

Imported only where an endpoint is configured: OpenTelemetry's packages are the extra `otel`.
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
from millstream.dashboard import moments

if TYPE_CHECKING:
    from millstream.runtime.events import Event

# The phases in the order in which Spark goes through them (MicroBatchExecution, 4.2); it tells how long each took and
# not when it began, so they are laid one after another.
ORDER = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")
WHOLE = "triggerExecution"
# Sinks that took a part of a batch whose figures have not come yet; a batch has a few.
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
    """What is known of a query between two of its batches."""

    start: SpanContext | None = None
    heard: float = 0.0
    sources: list[str] = field(default_factory=list)
    sinks: list[str] = field(default_factory=list)
    written: deque[Event] = field(default_factory=lambda: deque(maxlen=WRITTEN))


class _Ended(SpanProcessor):
    """Keeps the spans that have ended, for the thread that sends them."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Keep it."""
        self.spans.append(span)

    def taken(self) -> list[ReadableSpan]:
        """The spans since the last call."""
        found, self.spans = self.spans, []
        return found


class Spans:
    """Makes spans of the events of one run. Endpoint, headers and the like are OpenTelemetry's own variables."""

    name = "opentelemetry"

    def __init__(self, pipeline: str, run: str) -> None:
        # It logs each try with its address; what is lost is told once, by the one who sends.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
        self._ended = _Ended()
        self._provider = TracerProvider(resource=resource(pipeline, run), shutdown_on_exit=False)
        self._provider.add_span_processor(self._ended)
        self._tracer = self._provider.get_tracer("millstream", __version__)
        self._exporter = OTLPSpanExporter()
        self._common = {"millstream.pipeline": pipeline, "millstream.run": run}
        self._queries: dict[str, _Known] = {}

    def told(self, event: Event) -> list[ReadableSpan]:
        """The spans that an event ends."""
        if not event.query:
            return []
        at = moments.seconds(event.at)
        known = self._queries.setdefault(event.query, _Known(heard=at))
        match event.event:
            case "query_started":
                self._started(event, at, known)
            case "batch_written":
                known.written.append(event)
            case "batch_committed":
                self._batch(event, at, known)
            case "retry" | "query_failed":
                self._failed(event, at, known)
        if event.event != "batch_written":
            known.heard = at
        return self._ended.taken()

    def send(self, messages: list[ReadableSpan]) -> None:
        """Export spans. Raises `OSError` where they are not taken."""
        if self._exporter.export(messages) is not SpanExportResult.SUCCESS:
            raise ConnectionError("the spans were not taken")
        messages.clear()

    def close(self) -> None:
        """Let go of the connection."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]
        self._provider.shutdown()

    def _started(self, event: Event, at: float, known: _Known) -> None:
        told = event.data
        known.sources = [one for one in told.get("sources") or () if one]
        known.sinks = list(told.get("sinks") or ())
        known.written.clear()
        span = self._tracer.start_span(
            f"{event.query} start",
            context=trace.set_span_in_context(trace.INVALID_SPAN),
            attributes={
                **self._of(event, known),
                "millstream.query.id": str(told.get("id", "")),
                "millstream.query.run_id": str(told.get("run_id", "")),
                "millstream.trigger": str(told.get("trigger", "")),
            },
            start_time=_nanos(at),
        )
        span.end(_nanos(at))
        known.start = span.get_span_context()

    def _batch(self, event: Event, at: float, known: _Known) -> None:
        data = event.data
        took = {name: ms / 1000 for name, ms in data["duration_ms"].items()}
        whole = took.pop(WHOLE, sum(took.values()))
        began = moments.perhaps(data.get("began"))
        began = at - whole if began is None else began
        figures = {f"millstream.{name}": data.get(key) for key, name in _FIGURES.items()}
        span = self._root(event, known, began, {**figures, "millstream.batch": data["batch"]})
        within, here = trace.set_span_in_context(span), began
        for phase in (*ORDER, *sorted(took.keys() - set(ORDER))):
            # Phases of no length are those that Spark did not go through.
            if seconds := took.get(phase):
                child = self._tracer.start_span(phase, context=within, start_time=_nanos(here))
                here += seconds
                child.end(_nanos(here))
        for one in [one for one in known.written if one.data["batch"] <= data["batch"]]:
            known.written.remove(one)
            if one.data["batch"] == data["batch"]:
                told = {"millstream.sink": one.data["sink"], "millstream.skipped": bool(one.data["skipped"])}
                rows = one.data.get("rows")
                told |= {} if rows is None else {"millstream.rows": rows}
                span.add_event("written", told, _nanos(moments.seconds(one.at)))
        span.end(_nanos(began + whole))

    def _failed(self, event: Event, at: float, known: _Known) -> None:
        """A batch that failed, from the last word of the query: how far it came is not known."""
        data = event.data
        span = self._root(event, known, known.heard, {"millstream.batch": data.get("batch")})
        kind = str(data.get("cause", "outage"))
        told = {"exception.type": kind, "exception.message": data["reason"]}
        if data.get("record"):
            told["millstream.record"] = ", ".join(data["record"])
        span.add_event("exception", told, _nanos(at))
        span.set_attribute("error.type", kind)
        span.set_status(Status(StatusCode.ERROR, data["reason"]))
        span.end(_nanos(at))
        known.written.clear()

    def _root(self, event: Event, known: _Known, began: float, figures: dict[str, Any]) -> trace.Span:
        """The span of a batch, with a link to the start of its query: each batch is a trace of its own."""
        return self._tracer.start_span(
            f"{event.query} batch",
            context=trace.set_span_in_context(trace.INVALID_SPAN),
            attributes={
                **self._of(event, known),
                **{name: value for name, value in figures.items() if value is not None},
            },
            links=[Link(known.start)] if known.start else [],
            start_time=_nanos(began),
        )

    def _of(self, event: Event, known: _Known) -> dict[str, Any]:
        return {
            **self._common,
            "millstream.query": event.query,
            "millstream.sources": known.sources,
            "millstream.sinks": known.sinks,
        }


def resource(pipeline: str, run: str) -> Resource:
    """Who tells: the pipeline is the service, unless OpenTelemetry's variables name another."""
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    own = {} if named else {"service.name": pipeline}
    return Resource.create({**own, "service.version": __version__, "service.instance.id": run})


def _nanos(seconds: float) -> int:
    return round(seconds * 1e9)
