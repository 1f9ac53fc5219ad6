"""What an Avro schema says of columns, what Spark could not read, and the bytes that are made of a row."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from millstream.spec.avro.encoding import encode_row
from millstream.spec.avro.schema import Avro, columns_of_schema

if TYPE_CHECKING:
    from pathlib import Path

TIME = {"type": "long", "logicalType": "timestamp-millis"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


def record(**types: Any) -> dict[str, Any]:
    """A schema with these fields."""
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return {"type": "record", "name": "Click", "namespace": "shop", "fields": fields}


@pytest.mark.parametrize(
    ("kind", "ddl"),
    [
        ("string", "string"),
        ("long", "bigint"),
        (["null", "int"], "int"),
        (["int", "long"], "bigint"),
        (["string", "int"], "struct<member0:string,member1:int>"),
        (TIME, "timestamp"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp_ntz"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "decimal(9,2)"),
        ({"type": "enum", "name": "Kind", "symbols": ["a"]}, "string"),
        ({"type": "fixed", "name": "Md5", "size": 16}, "binary"),
        ({"type": "array", "items": ["null", "string"]}, "array<string>"),
        ({"type": "map", "values": "double"}, "map<string,double>"),
        ({"type": "record", "name": "Place", "fields": [{"name": "x", "type": "float"}]}, "struct<x:float>"),
        ({"type": {"type": "array", "items": "int"}}, "array<int>"),
    ],
)
def test_each_type_has_sparks_name(kind: Any, ddl: str) -> None:
    assert columns_of_schema(record(it=kind)) == {"it": ddl}


def test_a_named_type_is_known_behind_its_definition() -> None:
    place = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}]}

    assert columns_of_schema(record(start=place, stop="Place", end="shop.Place")) == dict.fromkeys(
        ["start", "stop", "end"], "struct<x:int>"
    )


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("string", "must be 'record'"),
        (record(), "has no fields"),
        ({"type": "record", "fields": [{"name": "a", "type": "int"}]}, "has no name"),
        (record(it="text"), "field 'it' is of type 'text', which is neither an Avro type"),
        (record(it={"type": "fixed", "name": "Md5"}), "the fixed type of field 'it' has no size"),
        (record(it={"type": "enum", "name": "Kind"}), "the enum of field 'it' has no symbols"),
        (record(it={"type": "enum", "name": "Kind", "symbols": ["a-b"]}), "'a-b' is not an Avro name"),
        (record(**{"2nd": "int"}), "'2nd' is not an Avro name"),
        (record(it={"type": "array"}), "type of field 'it' is not an Avro type"),
        (record(it=["null", "Click"]), "which contains it"),
        (record(it="int", IT="int"), "two fields 'IT'"),
        (record(it=["null"]), "can only be null"),
    ],
)
def test_what_spark_cannot_read_is_said_with_its_field(schema: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        columns_of_schema(schema)


def test_a_schema_may_stand_in_a_file_beside_the_spec(tmp_path: Path) -> None:
    (tmp_path / "click.avsc").write_text(json.dumps(record(id="string")))
    read = Avro.model_validate({"schema": "click.avsc"}, context={"folder": tmp_path})

    assert read.columns == {"id": "string"}
    with pytest.raises(ValidationError, match=r"other\.avsc cannot be read: No such file"):
        Avro.model_validate({"schema": "other.avsc"}, context={"folder": tmp_path})


# By the rules of the Avro specification, section binary encoding: zigzag, then seven bits a byte.
@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("int", -1, "01"),
        ("long", 64, "8001"),
        ("string", "foo", "06666f6f"),
        ("boolean", True, "01"),
        (["null", "string"], "a", "020261"),
        (["null", "string"], None, "00"),
        ({"type": "array", "items": "long"}, [3, 27], "04063600"),
        ({"type": "map", "values": "int"}, {"a": 1}, "0202610200"),
        ({"type": "enum", "name": "Kind", "symbols": ["a", "b"]}, "b", "02"),
        (TIME, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "d00f"),
        (TIME, "1970-01-01T00:00:01Z", "d00f"),
        (TIME, "1970-01-01 00:00:01 UTC", "d00f"),
        (MONEY, Decimal("1.5"), "040096"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 8},
            "123456789012345678901234567890.12345678",
            "20" + (12345678901234567890123456789012345678).to_bytes(16).hex(),
        ),
        ("bytes", "AQI=", "040102"),
        ("double", 1.0, "000000000000f03f"),
    ],
)
def test_a_value_has_the_bytes_of_the_specification(kind: Any, value: Any, wanted: str) -> None:
    avro = Avro.model_validate({"schema": record(it=kind)})

    assert encode_row(avro, {"it": value}).hex() == wanted


def test_a_header_stands_before_the_bytes() -> None:
    avro = Avro.model_validate({"schema": record(it="int"), "header": "confluent", "id": 258})

    assert encode_row(avro, {"it": 1}).hex() == "00" + "00000102" + "02"


@pytest.mark.parametrize("value", [1.239, "1.2345", 12345678.25, "1e40", "NaN", "1,5"])
def test_a_decimal_that_would_lose_digits_is_refused(value: Any) -> None:
    avro = Avro.model_validate({"schema": record(it=MONEY)})

    with pytest.raises(ValueError, match="is not a decimal of 9 digits, 2 of them after the point"):
        encode_row(avro, {"it": value})


def test_null_where_none_may_be_is_refused() -> None:
    with pytest.raises(ValueError, match="field 'it' is null"):
        encode_row(Avro.model_validate({"schema": record(it="int")}), {})
