"""Fed rows as the raw columns of their source."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.model import SourceEntry
from millstream.testing.harness.source_encoder import Feeder

if TYPE_CHECKING:
    from millstream.testing.model import Fed

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KAFKA = {"kafka": {"bootstrap_servers": "h", "subscribe": "clicks"}}


def raw(row: Fed, zone: str = "UTC", **settings: Any) -> dict[str, Any]:
    """The raw columns of one row that is fed to a source with these settings."""
    (text,) = Feeder("clicks").raw(SourceEntry.model_validate(settings), [row], NOW, zone)
    return json.loads(text)  # type: ignore[no-any-return]


def body(message: dict[str, Any]) -> Any:
    """The JSON in the value of a message."""
    return json.loads(base64.b64decode(message["value"]))


@pytest.mark.parametrize(
    "time", ["2026-01-01 12:00:00 UTC", "2026-01-01 13:00:00+01:00", " 2026-01-01 12:00:00"]
)
def test_a_message_has_the_time_that_a_test_file_may_say(time: str) -> None:
    columns = raw({"id": "a", "timestamp": time}, **KAFKA, schema={"id": "string"}, keep=["timestamp"])

    assert datetime.fromisoformat(columns["timestamp"]) == datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_text_that_cannot_be_written_as_csv_is_to_be_fed_as_a_record() -> None:
    settings = {**KAFKA, "format": "csv", "schema": {"a": "string"}, "options": {"quote": ""}}

    with pytest.raises(InvalidInput, match="needs quotes") as refused:
        raw({"a": "x,y"}, **settings)

    assert "'record'" in refused.value.fix


def test_columns_have_the_names_of_the_schema() -> None:
    schema = {"Event_ID": "string", "at": "struct<Place: string>"}
    row = {"event_id": "a", "AT": {"place": "x"}}

    message = raw(row, **KAFKA, schema=schema)

    assert body(message) == {"Event_ID": "a", "at": {"Place": "x"}}
    assert raw({"Value": 1}, rate={}) == {"value": 1}


def test_text_for_a_binary_column_is_encoded_unless_it_is_base64() -> None:
    source = {"parquet": "in", "schema": {"payload": "binary", "more": "array<binary>"}}

    assert raw({"payload": "hello", "more": ["AQI="]}, **source) == {"payload": "aGVsbG8=", "more": ["AQI="]}


def test_numbers_that_are_none_have_the_names_that_spark_reads() -> None:
    source = {"parquet": "in", "schema": {"a": "double", "b": "float", "c": "double"}}

    assert raw({"a": "nan", "b": "-INF", "c": 1}, **source) == {"a": "NaN", "b": "-Infinity", "c": 1}


def test_a_column_has_the_time_format_of_the_source() -> None:
    schema = {"at": "timestamp", "day": "date", "seen": "array<timestamp>"}
    options = {"timestampFormat": "dd/MM/yyyy HH:mm:ss", "DATEFORMAT": "dd.MM.yyyy"}
    row = {"at": "2026-01-31 12:00:00", "day": "2026-01-31", "seen": ["2026-01-31 13:00:00+01:00"]}
    row["timestamp"] = "2026-01-31 12:00:00"

    message = raw(row, **KAFKA, schema=schema, options=options, keep=["timestamp"])

    assert body(message) == {
        "at": "31/01/2026 12:00:00",
        "day": "31.01.2026",
        "seen": ["31/01/2026 12:00:00"],
    }
    assert body(raw({"at": "31/01/2026"}, **KAFKA, schema=schema, options=options)) == {"at": "31/01/2026"}
    assert message["timestamp"] == "2026-01-31T12:00:00+00:00"


def test_columns_of_files_have_no_time_format() -> None:
    source = {"csv": "in", "schema": {"at": "timestamp"}, "options": {"timestampFormat": "dd/MM/yyyy"}}

    assert raw({"at": "2026-01-31 12:00:00"}, **source)["at"] == "2026-01-31 12:00:00"


@pytest.mark.parametrize(
    ("kind", "option", "pattern", "zone", "text"),
    [
        ("timestamp", "timestampFormat", "dd HH:mm", "Asia/Tokyo", "31 21:00"),
        ("timestamp", "timestampFormat", "HH:mmXXX", "America/New_York", "07:00-05:00"),
        ("timestamp", "timestampFormat", "HH:mmX", "Etc/UTC", "12:00Z"),
        ("timestamp", "timestampFormat", "HH:mm", "GMT+2", "14:00"),
        ("timestamp_ntz", "timestampNTZFormat", "HH:mm", "Asia/Tokyo", "12:00"),
        ("date", "dateFormat", "dd.MM.yyyy", "America/New_York", "31.01.2026"),
    ],
)
def test_times_are_in_the_zone_of_the_source(
    kind: str, option: str, pattern: str, zone: str, text: str
) -> None:
    value = "2026-01-31" if kind == "date" else "2026-01-31 12:00:00"
    options = {option: pattern, "timeZone": zone}

    assert body(raw({"at": value}, **KAFKA, schema={"at": kind}, options=options)) == {"at": text}


def test_the_zone_of_the_session_is_the_default() -> None:
    settings = {**KAFKA, "schema": {"at": "timestamp"}, "options": {"timestampFormat": "HH:mm"}}

    assert body(raw({"at": "2026-01-31 12:00:00"}, "Asia/Tokyo", **settings)) == {"at": "21:00"}


@pytest.mark.parametrize(
    ("time", "text"),
    [
        ("2026-01-31 12:00:00", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31", "2026-01-31T00:00:00+00:00"),
        ("2026-01-31 12:00:00 UTC", "2026-01-31 12:00:00 UTC"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("soon", "soon"),
    ],
)
@pytest.mark.parametrize(
    ("zone", "options"), [("Asia/Tokyo", {}), ("UTC", {"timezone": "PST"}), ("Asia/Tokyo", None)]
)
def test_a_time_without_a_format_is_in_utc_in_any_zone(
    time: str, text: str, zone: str, options: dict[str, str] | None
) -> None:
    schema = {"at": "timestamp", "local": "timestamp_ntz"}
    row = {"at": time, "local": "2026-01-31 12:00:00"}

    if options is None:
        columns = raw(row, zone, parquet="in", schema=schema)
    else:
        columns = body(raw(row, zone, **KAFKA, schema=schema, options=options))

    assert columns == {"at": text, "local": "2026-01-31 12:00:00"}


@pytest.mark.parametrize(
    "options", [{"timestampFormat": "yyyy-Q"}, {"timestampFormat": "HH:mm", "timeZone": "Asia/Nowhere"}]
)
def test_a_time_format_that_cannot_be_written_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="times"):
        raw({"at": "2026-01-31 12:00:00"}, **KAFKA, schema={"at": "timestamp"}, options=options)
