"""What sinks say of the columns that come, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from kind_examples import example_settings
from millstream.connectors.registry import sinks
from millstream.spec.output_mode import OutputMode

PLAIN = {"id": "bigint", "at": "timestamp", "name": "string"}


def sink(kind: str, **settings: Any) -> Any:
    needed: dict[str, dict[str, Any]] = {
        "delta": {"path": "t"},
        "kafka": {"topic": "t"},
        "postgres": {"url": "postgresql://h/d"},
        "text": {"partition_by": ["id", "at"]},
    }
    return sinks()[kind].model_validate(
        {**example_settings(sinks()[kind]), **needed.get(kind, {}), **settings}
    )


@pytest.mark.parametrize("kind", sorted(sinks()))
def test_plain_columns_are_taken(kind: str) -> None:
    assert sink(kind).refuses(PLAIN) == []


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        ("delta", "interval day to second"),
        ("delta", "array<void>"),
        ("parquet", "struct<a:interval>"),
        ("parquet", "time(6)"),
        ("orc", "void"),
        ("orc", "array<variant>"),
        ("json", "interval"),
        ("csv", "struct<start:timestamp,end:timestamp>"),
        ("csv", "array<string>"),
        ("text", "binary"),
        ("postgres", "interval day to second"),
        ("postgres", "map<date,int>"),
        ("kafka", "array<struct<a:int,b:map<string,map<binary,int>>>>"),
    ],
)
def test_a_type_that_spark_cannot_write_there_is_refused(kind: str, type_: str) -> None:
    (problem,) = sink(kind).refuses({"odd": type_} if kind == "text" else {**PLAIN, "odd": type_})

    assert "odd" in problem.message


@pytest.mark.parametrize(
    "settings", [{"format": "json"}, {"format": "csv"}, {"format": "raw", "value": "name"}]
)
def test_a_key_of_several_columns_is_json_in_any_format(settings: dict[str, str]) -> None:
    (problem,) = sink("kafka", key=["id", "odd"], **settings).refuses({**PLAIN, "odd": "map<binary,int>"})

    assert problem.message == "JSON cannot store the keys of column 'odd' of type map<binary,int>"


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        ("delta", "void"),
        ("delta", "variant"),
        ("parquet", "interval day to second"),
        ("parquet", "struct<a:void>"),
        ("orc", "map<binary,int>"),
        ("delta", "map<date,int>"),
        ("kafka", "map<string,date>"),
        ("postgres", "struct<a:map<bigint,binary>>"),
        ("json", "variant"),
        ("csv", "binary"),
        ("csv", "interval day to second"),
        ("postgres", "struct<start:timestamp,end:timestamp>"),
    ],
)
def test_a_type_that_spark_writes_there_is_taken(kind: str, type_: str) -> None:
    assert sink(kind).refuses({**PLAIN, "fair": type_}) == []


def test_a_raw_value_is_text_or_bytes() -> None:
    raw = sink("kafka", format="raw", value="id")

    assert [item.field for item in raw.refuses(PLAIN)] == ["value"]


def test_a_folder_is_of_plain_values() -> None:
    divided = sink("parquet", partition_by=["w"])

    assert [item.field for item in divided.refuses({**PLAIN, "w": "struct<a:int>"})] == ["partition_by"]


def test_a_column_is_left_for_the_files() -> None:
    assert [item.field for item in sink("parquet", partition_by=["id"]).refuses({"id": "int"})] == [
        "partition_by"
    ]


@pytest.mark.parametrize(
    ("kind", "settings", "cautioned"),
    [
        ("kafka", {"options": {"kafka.acks": 1}}, 1),
        ("kafka", {"options": {"kafka.acks": "all"}}, 0),
        ("kafka", {"options": {"kafka.enable.idempotence": False}}, 1),
        ("delta", {"properties": {"delta.setTransactionRetentionDuration": "interval 1 day"}}, 1),
        ("delta", {"properties": {"delta.setTransactionRetentionDuration": "interval 2 weeks"}}, 0),
        ("delta", {"properties": {"delta.setTransactionRetentionDuration": "interval 30 days"}}, 0),
        ("delta", {}, 0),
    ],
)
def test_a_setting_that_takes_something_away_is_told(
    kind: str, settings: dict[str, Any], cautioned: int
) -> None:
    assert len(sink(kind, **settings).weakening_problems(OutputMode.APPEND)) == cautioned


@pytest.mark.parametrize(("kind", "refused"), [("delta", 1), ("parquet", 1), ("kafka", 1), ("console", 0)])
def test_a_script_s_sink_without_a_path_is_judged_by_its_columns(kind: str, refused: int) -> None:
    columns = {"value": "string", "odd": "struct<a:interval>"} if kind != "kafka" else {"value": "bigint"}

    assert len(sinks()[kind].of_spark(columns, {"topic": "t"}, ())) == refused
