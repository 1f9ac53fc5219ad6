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
    with Receiver() as made:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.address)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20S3CR3T")
        yield made


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


def written(number: int, seconds: float) -> Event:
    data = {"batch": number, "sink": "console:", "rows": 90, "skipped": False}
    return Event("batch_written", "funnel", data, at(seconds))


def sent(collector: Receiver, *happened: Event) -> list[Span]:
    """The spans that a collector gets of some events."""
    spans = Spans("shop", "r1")
    made = [one for event in happened for one in spans.told(event)]
    spans.send(made)
    spans.close()
    assert made == []
    return read(collector)


def read(collector: Receiver) -> list[Span]:
    found = []
    for request in collector.requests:
        body = gzip.decompress(request.body) if "content-encoding" in request.headers else request.body
        told = ExportTraceServiceRequest.FromString(body)
        found += [span for one in told.resource_spans for scope in one.scope_spans for span in scope.spans]
    return found


def figures(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_a_batch_is_a_trace_with_its_phases_below_it(collector: Receiver) -> None:
    phases = {"latestOffset": 100, "addBatch": 600, "walCommit": 200, "triggerExecution": 1000}
    figured = batch(7, 9, duration_ms=phases, began=at(8), watermark=at(-300))

    start, *children, whole = sent(collector, began(), written(7, 8.5), figured)

    assert whole.name == "funnel batch"
    assert (whole.start_time_unix_nano, whole.end_time_unix_nano) == (
        round((START + 8) * 1e9),
        round((START + 9) * 1e9),
    )
    assert [one.name for one in children] == ["latestOffset", "walCommit", "addBatch"]
    assert {one.parent_span_id for one in children} == {whole.span_id}
    assert [one.end_time_unix_nano - one.start_time_unix_nano for one in children] == pytest.approx(
        [1e8, 2e8, 6e8], abs=1e4
    )
    assert children[-1].start_time_unix_nano == children[1].end_time_unix_nano
    assert [link.span_id for link in whole.links] == [start.span_id]
    assert whole.trace_id != start.trace_id
    told = figures(whole)
    assert told["millstream.query"] == "funnel"
    assert (told["millstream.batch"], told["millstream.rows.in"], told["millstream.rows.out"]) == (7, 100, 90)
    assert told["millstream.watermark"] == at(-300)
    assert [one.string_value for one in told["millstream.sinks"].values] == ["console:"]
    assert [one.name for one in whole.events] == ["written"]


def test_a_batch_that_failed_is_an_error_with_its_reason(collector: Receiver) -> None:
    data = {"cause": "defect", "reason": "NOT NULL broken", "fix": "", "batch": 3, "value": "S3CR3T value"}

    *_, failed = sent(collector, began(), batch(2, 5), Event("query_failed", "funnel", data, at(7)))

    assert failed.status.code == 2
    assert failed.status.message == "NOT NULL broken"
    assert figures(failed)["millstream.batch"] == 3
    assert failed.start_time_unix_nano == round((START + 5) * 1e9)
    assert [event.name for event in failed.events] == ["exception"]
    assert b"S3CR3T" not in collector.requests[0].body


def test_the_pipeline_is_the_service_unless_the_environment_names_one(
    collector: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent(collector, began())
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,team=web")
    sent(collector, began())

    names = [
        {one.key: one.value.string_value for one in resource.resource.attributes}
        for request in collector.requests
        for resource in ExportTraceServiceRequest.FromString(request.body).resource_spans
    ]
    assert [one["service.name"] for one in names] == ["shop", "other"]
    assert names[1]["team"] == "web"
    assert collector.requests[0].path == "/v1/traces"
    assert collector.requests[0].headers["authorization"] == "Bearer S3CR3T"


def test_a_collector_that_refuses_is_an_error_that_names_no_secret(collector: Receiver) -> None:
    collector.status = 401
    spans = Spans("shop", "r1")
    made = list(spans.told(began()))

    with pytest.raises(OSError, match="were not accepted") as refused:
        spans.send(made)

    assert len(made) == 1
    assert "S3CR3T" not in str(refused.value)


def test_without_its_package_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = builtins.__import__

    def without(name: str, *given: Any, **more: Any) -> Any:
        if name.startswith("millstream.dashboard.export.opentelemetry"):
            raise ModuleNotFoundError("No module named 'opentelemetry'", name="opentelemetry")
        return plain(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    said: list[str] = []

    found = configure_exporters(
        pipeline(tmp_path), "r1", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, said.append
    )

    assert found == []
    assert said == [
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
    said: list[str] = []

    assert configure_exporters(pipeline(tmp_path), "r1", settings, said.append) == []
    assert said == []


def test_another_protocol_is_told_in_one_sentence(tmp_path: Path) -> None:
    said: list[str] = []
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}

    assert configure_exporters(pipeline(tmp_path), "r1", settings, said.append) == []
    assert said[0].endswith("the protocol is grpc, but spans are sent as http/protobuf")
