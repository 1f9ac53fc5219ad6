"""Lineage events as a store receives them: by OpenLineage's specification, its names, and without a secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from millstream.analysis.query.plan_model import Column, Operator, PlannedQuery, Read
from millstream.checking.check import CheckResult
from millstream.connectors.api.values.lineage_dataset import dataset_of_folder
from millstream.dashboard.export.openlineage import Lineage, receiver_from_environment
from millstream.dashboard.live_run import LivePage, PageOptions
from millstream.dashboard.state import timestamps
from millstream.dashboard.state.pipeline_info import known_columns
from millstream.engine.events.event_bus import Event
from millstream.pipeline.model import Pipeline
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger
from unit.dashboard.conftest import at, batch
from unit.dashboard.receiving import Receiver

if TYPE_CHECKING:
    from pathlib import Path

RUN = "9f0c2f0e-6a8e-4d6b-9f9e-0a9f6c1d2e3f"
NAMED = {"type": "string", "minLength": 1}
URI = {"type": "string", "pattern": r"^[a-z][a-z0-9+.-]*:\S+$"}
FACETS = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "required": ["_producer", "_schemaURL"],
        "properties": {"_producer": URI, "_schemaURL": URI},
    },
}
IDENTIFIED = {"namespace": NAMED, "name": NAMED, "facets": FACETS}
DATASETS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["namespace", "name"],
        "properties": {**IDENTIFIED, "inputFacets": FACETS, "outputFacets": FACETS},
        "additionalProperties": False,
    },
}
# What the specification's RunEvent (2-0-2) asks for, in our own words, and stricter where it lets anything pass.
RUN_EVENT = {
    "type": "object",
    "required": ["eventTime", "producer", "schemaURL", "run", "job", "eventType"],
    "properties": {
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "eventTime": {"type": "string"},
        "producer": URI,
        "schemaURL": URI,
        "run": {
            "type": "object",
            "required": ["runId"],
            "properties": {"runId": {"type": "string", "format": "uuid"}, "facets": FACETS},
            "additionalProperties": False,
        },
        "job": {
            "type": "object",
            "required": ["namespace", "name"],
            "properties": IDENTIFIED,
            "additionalProperties": False,
        },
        "inputs": DATASETS,
        "outputs": DATASETS,
    },
    "additionalProperties": False,
}


def pipeline(folder: Path) -> Pipeline:
    spec = {
        "name": "shop",
        "folder": folder,
        "sources": {
            "clicks": {
                "kafka": {"bootstrap_servers": "broker:9092,other:9092", "subscribe": "clicks"},
                "format": "json",
                "schema": {"event_id": "string", "at": "timestamp"},
            },
        },
        "queries": {
            "funnel": {
                "from": "clicks",
                "output_mode": "append",
                "to": [
                    {"parquet": {"path": "/lake/funnel"}},
                    {"postgres": {"table": "funnel", "url": "postgresql://me:S3CR3T@db:5433/shop"}},
                    {"console": {}},
                ],
            }
        },
    }
    return Pipeline.model_validate(spec)


SINKS = ["parquet:lake/funnel", "postgres:funnel", "console:"]


def query_started(seconds: float = 1) -> Event:
    data = {"id": "i", "run_id": RUN, "trigger": "5 seconds", "batch": None}
    return Event("query_started", "funnel", {**data, "sources": ["clicks"], "sinks": SINKS}, at(seconds))


def one_batch(number: int, seconds: float) -> list[Event]:
    read = [{"description": "Kafka", "numInputRows": 100}]
    messages = {"batch": number, "sink": "postgres:funnel", "rows": 40, "skipped": False}
    return [
        Event("batch_written", "funnel", messages, at(seconds)),
        batch(number, seconds, sources=read),
    ]


def export_events(folder: Path, *happened: Event) -> list[dict[str, Any]]:
    """The events that a store gets, each of which must be right."""
    with Receiver() as store:
        settings = {"OPENLINEAGE_URL": store.address, "OPENLINEAGE_API_KEY": "K3Y"}
        lineage = Lineage(pipeline(folder), "r1", receiver_from_environment(settings))
        result = [entry for event in happened for entry in lineage.convert(event)]
        lineage.send(result)
    assert result == []
    for request in store.requests:
        assert request.path == "/api/v1/lineage"
        assert request.headers["authorization"] == "Bearer K3Y"
        assert b"S3CR3T" not in request.body
        assert b"K3Y" not in request.body
    actual = [json.loads(request.body) for request in store.requests]
    for item in actual:
        Draft202012Validator(RUN_EVENT, format_checker=FormatChecker()).validate(item)
        timestamps.parse(item["eventTime"])
    return actual


def test_a_query_tells_its_start_its_course_and_its_end(tmp_path: Path) -> None:
    stopped = Event("query_stopped", "funnel", {"reason": "asked to end"}, at(120))
    many = [event for number in range(20) for event in one_batch(number, 2 + 5 * number)]

    actual = export_events(tmp_path, query_started(), *many, stopped)

    assert [item["eventType"] for item in actual] == ["START", "RUNNING", "RUNNING", "COMPLETE"]
    assert {item["run"]["runId"] for item in actual} == {RUN}
    assert {item["job"]["name"] for item in actual} == {"shop.funnel"}
    last = actual[-1]
    assert last["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 2000
    assert [output["outputFacets"]["outputStatistics"]["rowCount"] for output in last["outputs"]] == [0, 800]


def test_datasets_have_the_names_that_others_give_them(tmp_path: Path) -> None:
    columns = {"source.clicks": {"event_id": "string"}, "sink.funnel.0": {"n": "bigint"}}

    start = export_events(tmp_path, Event("checked", "", {"columns": columns}, at(0)), query_started())[0]

    assert [(item["namespace"], item["name"]) for item in start["inputs"]] == [
        ("kafka://broker:9092", "clicks")
    ]
    assert [(output["namespace"], output["name"]) for output in start["outputs"]] == [
        ("file", "/lake/funnel"),
        ("postgres://db:5433", "shop.public.funnel"),
    ]
    assert start["inputs"][0]["facets"]["schema"]["fields"] == [{"name": "event_id", "type": "string"}]
    assert start["outputs"][0]["facets"]["schema"]["fields"] == [{"name": "n", "type": "bigint"}]
    assert "facets" not in start["outputs"][1]


def test_a_failure_ends_its_start_and_the_next_start_is_another_run(tmp_path: Path) -> None:
    retry = Event(
        "retry", "funnel", {"reason": "postgres is away", "wait_seconds": 1.0, "failures": 1}, at(3)
    )
    event = query_started(5)
    event.data["run_id"] = "11111111-1111-4111-8111-111111111111"
    stopped = Event("run_stopped", "", {"exit_code": 1}, at(6))

    actual = export_events(
        tmp_path, Event("run_started", "", {}, at(0)), query_started(), retry, event, stopped
    )

    assert [(item["job"]["name"], item["eventType"]) for item in actual] == [
        ("shop", "START"),
        ("shop.funnel", "START"),
        ("shop.funnel", "FAIL"),
        ("shop.funnel", "START"),
        ("shop.funnel", "ABORT"),
        ("shop", "FAIL"),
    ]
    assert actual[2]["run"]["facets"]["errorMessage"]["message"] == "postgres is away"
    assert actual[3]["run"]["runId"] != actual[2]["run"]["runId"]
    assert {item["run"]["facets"]["parent"]["run"]["runId"] for item in actual[1:5]} == {
        actual[0]["run"]["runId"]
    }


def test_a_run_sends_what_its_page_hears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as store:
        monkeypatch.setenv("OPENLINEAGE_URL", store.address)
        with LivePage(pipeline(tmp_path), ["funnel"], PageOptions(is_served=False)) as page:
            failed = {"reason": "no login with S3CR3T", "wait_seconds": 1.0, "failures": 1}
            for event in (query_started(), Event("retry", "funnel", failed, at(2))):
                page.feed.take(event)
    assert page.notes == []
    assert [json.loads(received.body)["eventType"] for received in store.requests] == ["START", "FAIL"]
    assert b"S3CR3T" not in store.requests[1].body


def test_an_address_of_another_kind_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "file:///etc/passwd")

    with LivePage(pipeline(tmp_path), ["funnel"], PageOptions(is_served=False)) as page:
        assert page.feed.outward == []

    assert page.notes == ["no lineage is sent: OPENLINEAGE_URL must begin with http:// or https://"]


@pytest.mark.parametrize(
    ("place", "named"),
    [
        ("/lake/funnel/", ("file", "/lake/funnel")),
        ("file:///lake/funnel", ("file", "/lake/funnel")),
        ("s3a://key:S3CR3T@bucket/lake/funnel", ("s3://bucket", "lake/funnel")),
        ("gs://bucket/lake", ("gs://bucket", "lake")),
        ("hdfs://name:8020/lake", ("hdfs://name:8020", "/lake")),
        (
            "abfss://box@store.dfs.core.windows.net/lake",
            ("abfss://box@store.dfs.core.windows.net", "/lake"),
        ),
    ],
)
def test_a_folder_is_named_by_its_store(place: str, named: tuple[str, str]) -> None:
    assert dataset_of_folder(place) == named


def test_columns_are_those_of_the_spec_or_of_the_plan(tmp_path: Path) -> None:
    spec = pipeline(tmp_path)
    read = Read(1, "Relation", "", columns=(Column("value", "binary"),), source="clicks", is_streaming=True)
    root = Operator(0, "Project", "", (read,), (Column("event_id", "string"), Column("n", "bigint")))
    planned = PlannedQuery("funnel", root, OutputMode.APPEND, Trigger(once=True))

    actual = known_columns(spec, CheckResult([], (planned,), [], (), {}))

    assert actual["source.clicks"] == {"event_id": "string", "at": "timestamp"}
    assert actual["sink.funnel.0"] == actual["sink.funnel.1"] == {"event_id": "string", "n": "bigint"}
