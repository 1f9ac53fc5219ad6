from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

from millstream.connectors.api.values.recent_message import RecentMessage
from millstream.connectors.kafka.client import admin
from millstream.connectors.registry import sources
from millstream.diagnostics.failure import InvalidInput, MillstreamError, NotReady
from millstream.pipeline.inference.read_records import Records, Topic, read_files, read_topic, to_name
from millstream.spec.avro.encoding import encode_row
from millstream.spec.avro.schema import Avro, Header

if TYPE_CHECKING:
    from collections.abc import Callable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def read_values(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Records]:
    """Read a topic that has these values."""

    def read(*values: bytes | None, avro: Avro | None = None) -> Records:
        messages = [RecentMessage("clicks", 0, at, NOON, None, value) for at, value in enumerate(values)]
        monkeypatch.setattr(sources()["kafka"], "recent", lambda *_: messages[::-1])
        return read_topic(Topic("clicks", "localhost:1", avro=avro, schema_path="clicks.avsc"), {}, Path())

    return read


def test_objects_of_a_topic_come_in_the_order_of_their_offsets(read_values: Callable[..., Records]) -> None:
    records = read_values(*(b'{"n": %d}' % number for number in range(20)), b"half a mess", None)

    assert [row["n"] for row in records.rows] == [*range(20)]
    assert (records.format, records.malformed, records.nulls) == ("json", 1, 1)
    assert records.settings["subscribe"] == "clicks"


def test_lines_with_as_many_separators_are_csv(read_values: Callable[..., Records]) -> None:
    records = read_values(b"1;ada;2.5", b"2;eve;", b"3;bob;1.5")

    assert (records.format, records.options) == ("csv", {"sep": ";"})
    assert records.rows[1] == {"c1": 2, "c2": "eve", "c3": None}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "topic 'clicks' at localhost:1 has no records"),
        ([None, b""], "topic 'clicks' at localhost:1 has only records without a value"),
        (
            [b'{"a": 1}', b"\xff\xfe", b"hello"],
            "values of several formats: 1 JSON objects, 1 other texts, 1 binary",
        ),
        ([b"hello", b"world"], "values of an unknown format: 2 other texts"),
        ([b"[1]", b"[2]"], "values of an unknown format: 2 other texts"),
        ([b"\x00\x00\x00\x00\x07abc"], r"values with the header of a schema registry \(schema 7\)"),
    ],
)
def test_a_topic_that_cannot_be_read_is_a_sentence(
    read_values: Callable[..., Records], values: list[bytes | None], message: str
) -> None:
    with pytest.raises(MillstreamError, match=message) as failure:
        read_values(*values)

    assert failure.value.fix


CLICK = Avro.model_validate(
    {
        "schema": {
            "type": "record",
            "name": "Click",
            "fields": [
                {"name": "id", "type": "string"},
                {"name": "price", "type": ["null", "double"], "default": None},
                {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                {"name": "body", "type": "bytes"},
            ],
        }
    }
)
HEADER = CLICK.model_copy(update={"header": Header.CONFLUENT, "id": 7})


def click(number: int, avro: Avro = CLICK) -> bytes:
    """A click as a producer sends it."""
    row = {"id": f"c{number}", "price": None, "at": NOON + timedelta(seconds=number), "body": b"\x01"}
    return encode_row(avro, row)


def test_avro_values_are_rows_of_their_schema(read_values: Callable[..., Records]) -> None:
    records = read_values(*(click(number) for number in range(20)), b"\xff", avro=CLICK)

    assert records.rows[1] == {"id": "c1", "price": None, "at": NOON + timedelta(seconds=1), "body": b"\x01"}
    assert (records.format, records.malformed, records.avro) == ("avro", 1, {"schema": "clicks.avsc"})
    assert records.columns == {"id": "string", "price": "double", "at": "timestamp", "body": "binary"}
    assert json.loads(records.lines[0]) == {
        "id": "c0",
        "price": None,
        "at": "2026-01-01T12:00:00+00:00",
        "body": "AQ==",
    }


def test_a_sample_of_each_logical_type_is_encoded_as_the_message_was(
    read_values: Callable[..., Records],
) -> None:
    def field(column: str, **kind: object) -> dict[str, object]:
        return {"name": column, "type": kind}

    schema = [
        field("id", type="string", logicalType="uuid"),
        field("price", type="bytes", logicalType="decimal", precision=9, scale=2),
        field("day", type="int", logicalType="date"),
        field("opens", type="int", logicalType="time-millis"),
        field("closes", type="long", logicalType="time-micros"),
        field("local", type="long", logicalType="local-timestamp-micros"),
        field("mark", type="fixed", name="Mark", size=2),
        field("tags", type="map", values="long"),
    ]
    avro = Avro.model_validate({"schema": {"type": "record", "name": "Shop", "fields": schema}})
    row = {
        "id": "6a1f6b1e-6c0e-4a4b-9a44-0d9ad5a4e0c1",
        "price": "1.25",
        "day": "2026-01-01",
        "opens": "08:30:00.250000",
        "closes": "18:00:00.000001",
        "local": "2026-01-01T12:00:00",
        "mark": b"ab",
        "tags": {"x": 1},
    }
    values = [encode_row(avro, row)] * 3

    records = read_values(*values, avro=avro)

    assert [encode_row(avro, json.loads(line)) for line in records.lines] == values


def test_the_header_of_a_registry_is_found_with_its_id(read_values: Callable[..., Records]) -> None:
    one = read_values(*(click(number, HEADER) for number in range(9)), avro=CLICK)
    other = click(9, HEADER.model_copy(update={"id": 8}))
    two = read_values(*(click(number, HEADER) for number in range(9)), other, avro=CLICK)

    assert one.avro == {"schema": "clicks.avsc", "header": "confluent", "id": 7}
    assert two.avro == {"schema": "clicks.avsc", "header": "confluent"}


def test_another_schema_is_a_sentence_that_counts(read_values: Callable[..., Records]) -> None:
    with pytest.raises(MillstreamError, match=r"the Avro schema fits 1 of 3 values of topic 'clicks'"):
        read_values(click(1), b"\x02", b'{"id": 1}', avro=CLICK)


def test_a_broker_that_is_not_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "PATIENCE", 0.1)

    with pytest.raises(NotReady, match="no Kafka broker responds at localhost:1"):
        read_topic(Topic("clicks", "localhost:1"), {}, Path())


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("text", "settings", "row"),
    [
        ("id,zip,price\n1,01234,2.5\n", {"header": True}, {"id": 1, "zip": "01234", "price": 2.5}),
        ("1\tada\n2\teve\n", {"sep": "\t"}, {"c1": 1, "c2": "ada"}),
        ("name|ok\nada|true\n", {"header": True, "sep": "|"}, {"name": "ada", "ok": True}),
        ("ada,eve\nada,bob\n", {}, {"c1": "ada", "c2": "eve"}),
        ('id,text\n1,"a, b"\n', {"header": True}, {"id": 1, "text": "a, b"}),
    ],
)
def test_a_csv_file_shows_its_header_and_separator(
    tmp_path: Path, text: str, settings: dict[str, object], row: dict[str, object]
) -> None:
    write(tmp_path, "in/a.csv", text)

    records = read_files(str(tmp_path / "in/*.csv"), tmp_path)

    assert records.rows[0] == row
    assert records.settings == {"path": "in", **settings, "max_files_per_trigger": 100}


def test_a_parquet_file_has_its_own_types(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = pa.table({
        "at": pa.array([NOON], pa.timestamp("ms")),
        "price": pa.array([None], pa.decimal128(9, 2)),
        "tags": pa.array([[{"k": 1}]], pa.list_(pa.struct([("k", pa.int32())]))),
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "in" / "a.parquet")

    records = read_files(str(tmp_path / "in"), tmp_path)

    assert records.columns == {
        "at": "timestamp",
        "price": "decimal(9,2)",
        "tags": "array<struct<`k`: int>>",
    }


def test_other_files_of_the_folder_are_left_out_of_the_source(tmp_path: Path) -> None:
    write(tmp_path, "in/a.json", '{"a": 1}\n')
    write(tmp_path, "in/b.csv", "a\n")

    assert read_files(str(tmp_path / "in/*.json"), tmp_path).settings["path_glob_filter"] == "*.json"


DEEP = {"path": "in", "recursive_file_lookup": True}


@pytest.mark.parametrize(
    ("pattern", "files", "settings"),
    [
        ("in", ["in/a.json"], {"path": "in"}),
        ("in", ["in/x/a.json"], DEEP),
        ("in", ["in/x/a.json", "in/y/b.json"], DEEP),
        ("in", ["in/a.json", "in/x/b.json"], DEEP),
        ("in", ["in/day=1/a.json"], {"path": "in"}),
        ("in", ["in/day=1/hour=1/a.json", "in/day=1/hour=2/b.json"], {"path": "in"}),
        ("in", ["in/day=1/a.json", "in/b.json"], DEEP),
        ("in", ["in/day=1/a.json", "in/month=1/b.json"], DEEP),
        ("in", ["in/day=1/x/a.json"], DEEP),
        ("in/*/*.json", ["in/x/a.json"], {"path": "in/*/*.json"}),
        ("in/*/*.json", ["in/x/a.json", "in/y/b.json", "in/y/c.csv"], {"path": "in/*/*.json"}),
        (
            "in/**/*.json",
            ["in/a.json", "in/x/y/b.json", "in/x/c.csv"],
            {**DEEP, "path_glob_filter": "*.json"},
        ),
        ("in/**", ["in/a.json", "in/x/y/b.json"], DEEP),
        ("in/x*/**/*.json", ["in/x1/a.json"], {**DEEP, "path": "in/x*", "path_glob_filter": "*.json"}),
    ],
)
def test_the_source_reads_the_folders_in_which_the_files_are(
    tmp_path: Path, pattern: str, files: list[str], settings: dict[str, object]
) -> None:
    for name in files:
        write(tmp_path, name, '{"a": 1}\n')

    records = read_files(str(tmp_path / pattern), tmp_path)

    assert records.settings == {**settings, "max_files_per_trigger": 100}
    assert records.name == "in_records"


@pytest.mark.parametrize(
    ("files", "pattern", "message"),
    [
        ({}, "in/*", "no file matches"),
        ({"in/x/raw/a.json": "{}"}, "in/**/raw/*.json", "Spark has no pattern such as"),
        ({"in/a.json": "{}", "in/b.csv": "a"}, "in/*", "files of several formats: 1 json, 1 csv"),
        ({"in/a.xml": "<a/>"}, "in/*", "a.xml has a format that is not known"),
        ({"in/a.gz": "?"}, "in/*", "a.gz is compressed"),
        ({"in/a.json": ""}, "in/*", "have no records"),
        ({"in/a.json": "[\n1,\n2]\n"}, "in/*", "most lines are no JSON objects"),
        ({"in/a.parquet": "PAR?"}, "in/*", "a.parquet is not a Parquet file"),
    ],
)
def test_files_that_cannot_be_read_are_a_sentence(
    tmp_path: Path, files: dict[str, str], pattern: str, message: str
) -> None:
    for name, text in files.items():
        write(tmp_path, name, text)

    with pytest.raises((MillstreamError, InvalidInput), match=message) as failure:
        read_files(str(tmp_path / pattern), tmp_path)

    assert failure.value.fix


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("shop.clicks-v2", "shop_clicks_v2"),
        ("2026", "records_2026"),
        ("order", "order_records"),
        ("é", "records"),
    ],
)
def test_a_topic_has_a_name_that_sql_accepts(topic: str, name: str) -> None:
    assert to_name(topic) == name
