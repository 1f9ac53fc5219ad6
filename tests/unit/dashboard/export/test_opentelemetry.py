"""Batches as spans, as a collector receives them over OTLP."""

from __future__ import annotations

import builtins
import gzip
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from millstream.dashboard.export.configure import configure_exporters
from millstream.dashboard.export.opentelemetry import Spans
from millstream.engine.events.event_bus import Event
from millstream.pipeline.model import Pipeline
from unit.dashboard.conftest import START, at, batch
from unit.dashboard.receiving import Receiver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Span = Any


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)
    with Receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20S3CR3T")
        yield receiver


def pipeline(folder: Path) -> Pipeline:
    spec = {
        "name": "shop",
        "folder": folder,
        "sources": {"clicks": {"rate": {"rows_per_second": 1}}},
        "queries": {"funnel": {"from": "clicks", "to": {"console": {}}}},
    }
    return Pipeline.model_validate(spec)


def began(seconds: float = 0.0) -> Event:
    data = {"id": "i", "run_id": "r", "trigger": "5 seconds", "batch": None}
    return Event(
        "query_started", "funnel", {**data, "sources": ["clicks"], "sinks": ["console:"]}, at(seconds)
    )


def write_event(number: int, seconds: float) -> Event:
    data = {"batch": number, "sink": "console:", "rows": 90, "skipped": False}
    return Event("batch_written", "funnel", data, at(seconds))


def export_spans(collector: Receiver, *happened: Event) -> list[Span]:
    """The spans that a collector gets of some events."""
    spans = Spans("shop", "r1")
    result = [span for event in happened for span in spans.convert(event)]
    spans.send(result)
    spans.close()
    assert result == []
    return read(collector)


def read(collector: Receiver) -> list[Span]:
    actual = []
    for request in collector.requests:
        body = gzip.decompress(request.body) if "content-encoding" in request.headers else request.body
        messages = ExportTraceServiceRequest.FromString(body)
        actual += [
            span for item in messages.resource_spans for scope in item.scope_spans for span in scope.spans
        ]
    return actual


def figures(span: Span) -> dict[str, Any]:
    return {
        attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value"))
        for attribute in span.attributes
    }


def test_a_batch_is_a_trace_with_its_phases_below_it(collector: Receiver) -> None:
    phases = {"latestOffset": 100, "addBatch": 600, "walCommit": 200, "triggerExecution": 1000}
    figured = batch(7, 9, duration_ms=phases, began=at(8), watermark=at(-300))

    start, *children, full = export_spans(collector, began(), write_event(7, 8.5), figured)

    assert full.name == "funnel batch"
    assert (full.start_time_unix_nano, full.end_time_unix_nano) == (
        round((START + 8) * 1e9),
        round((START + 9) * 1e9),
    )
    assert [child.name for child in children] == ["latestOffset", "walCommit", "addBatch"]
    assert {child.parent_span_id for child in children} == {full.span_id}
    assert [child.end_time_unix_nano - child.start_time_unix_nano for child in children] == pytest.approx(
        [1e8, 2e8, 6e8], abs=1e4
    )
    assert children[-1].start_time_unix_nano == children[1].end_time_unix_nano
    assert [link.span_id for link in full.links] == [start.span_id]
    assert full.trace_id != start.trace_id
    messages = figures(full)
    assert messages["millstream.query"] == "funnel"
    assert (
        messages["millstream.batch"],
        messages["millstream.rows.in"],
        messages["millstream.rows.out"],
    ) == (7, 100, 90)
    assert messages["millstream.watermark"] == at(-300)
    assert [value.string_value for value in messages["millstream.sinks"].values] == ["console:"]
    assert [event.name for event in full.events] == ["written"]


def test_a_batch_that_failed_is_an_error_with_its_reason(collector: Receiver) -> None:
    data = {"cause": "defect", "reason": "NOT NULL broken", "fix": "", "batch": 3, "value": "S3CR3T value"}

    *_, failed = export_spans(collector, began(), batch(2, 5), Event("query_failed", "funnel", data, at(7)))

    assert failed.status.code == 2
    assert failed.status.message == "NOT NULL broken"
    assert figures(failed)["millstream.batch"] == 3
    assert failed.start_time_unix_nano == round((START + 5) * 1e9)
    assert [event.name for event in failed.events] == ["exception"]
    assert b"S3CR3T" not in collector.requests[0].body


def test_the_pipeline_is_the_service_unless_the_environment_names_one(
    collector: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_spans(collector, began())
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,team=web")
    export_spans(collector, began())

    names = [
        {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
        for request in collector.requests
        for resource in ExportTraceServiceRequest.FromString(request.body).resource_spans
    ]
    assert [name["service.name"] for name in names] == ["shop", "other"]
    assert names[1]["team"] == "web"
    assert collector.requests[0].path == "/v1/traces"
    assert collector.requests[0].headers["authorization"] == "Bearer S3CR3T"


def test_a_collector_that_refuses_is_an_error_that_names_no_secret(collector: Receiver) -> None:
    collector.status = 401
    spans = Spans("shop", "r1")
    result = list(spans.convert(began()))

    with pytest.raises(OSError, match="were not accepted") as error:
        spans.send(result)

    assert len(result) == 1
    assert "S3CR3T" not in str(error.value)


def test_without_its_package_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = builtins.__import__

    def without(name: str, *given: Any, **more: Any) -> Any:
        if name.startswith("millstream.dashboard.export.opentelemetry"):
            raise ModuleNotFoundError("No module named 'opentelemetry'", name="opentelemetry")
        return plain(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    output: list[str] = []

    export_queues = configure_exporters(
        pipeline(tmp_path), "r1", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, output.append
    )

    assert export_queues == []
    assert output == [
        "OTEL_EXPORTER_OTLP_ENDPOINT is set but no spans are sent: opentelemetry is not installed; "
        "pip install 'millstream[otel]'"
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_nothing_is_sent_unless_it_is_asked_for(tmp_path: Path, settings: dict[str, str]) -> None:
    output: list[str] = []

    assert configure_exporters(pipeline(tmp_path), "r1", settings, output.append) == []
    assert output == []


def test_another_protocol_is_told_in_one_sentence(tmp_path: Path) -> None:
    output: list[str] = []
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}

    assert configure_exporters(pipeline(tmp_path), "r1", settings, output.append) == []
    assert output[0].endswith("the protocol is grpc, but spans are sent as http/protobuf")
