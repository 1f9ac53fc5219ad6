"""Which records are malformed, and why: bytes as a broker may hand them over."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import sweep
from millstream.connectors.files.source import FILE
from millstream.frames.decode import REASON, decode, decode_rows, select_view_columns
from millstream.pipeline.model import Pipeline, SourceEntry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

KAFKA = {"bootstrap_servers": "localhost:9092", "subscribe": "orders"}
COLUMNS = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
# Records among which one is bad.
ROWS = sweep.size(20_000, 1_000_000, "MILLSTREAM_RECORDS")
BAD = ROWS * 3 // 4


def entry(form: str = "json", **changes: Any) -> SourceEntry:
    """Orders with an id, an amount and a time."""
    return SourceEntry.model_validate(
        {
            "kafka": KAFKA,
            "format": form,
            "schema": {"id": "string", "amount": "int", "at": "timestamp"},
            "watermark": {"event_time": "at", "delay_threshold": "5 minutes"},
            **changes,
        }
    )


def reasons(spark: SparkSession, entry: SourceEntry, *values: bytes | None) -> list[str | None]:
    """The reason for each value, None for a good one."""
    rows = [
        (b"k", None if value is None else bytearray(value), "orders", 0, at, None)
        for at, value in enumerate(values)
    ]
    judged = decode_rows(entry, spark.createDataFrame(rows, COLUMNS))
    return [row[0] for row in judged.orderBy("offset").select(REASON).collect()]


@pytest.mark.parametrize(
    "value",
    [
        b'{"id": "a", "amount": 3, "at": "2026-01-01T12:00:00Z"}',
        b'{"id": "a", "amount": 3, "at": "2026-01-01T14:00:00+02:00"}',
        b'{"id": "a", "amount": 3, "at": "2026-01-01T12:00:00.123456Z"}',
        b'{"at": "2026-01-01T12:00:00Z"}',
        b'{"id": null, "amount": null, "at": "2026-01-01T12:00:00Z", "unknown": [1]}',
        '{"id": "żółw 🐢", "at": "2026-01-01T12:00:00Z"}'.encode(),
        b' {"id": "two }\\n{ braces", "at": "2026-01-01T12:00:00Z"}\r\n',
    ],
)
def test_a_good_record_has_no_reason(spark: SparkSession, value: bytes) -> None:
    assert reasons(spark, entry(), value) == [None]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the value is null"),
        (b"", "the value is empty"),
        (b"hello", "the value is not JSON"),
        (b'{"id": "a", "amou', "the value is not JSON"),
        (b'{"id": "a", "amount": "many", "at": "2026-01-01T12:00:00Z"}', "the value does not fit the schema"),
        (b'{"id": "a", "amount": 3, "at": "soon"}', "the value does not fit the schema"),
        (
            b'{"id": "a", "amount": 99999999999, "at": "2026-01-01T12:00:00Z"}',
            "the value does not fit the schema",
        ),
        (b'{"id": "a", "amount": 3}', "at is missing"),
        (b'"a string"', "the value does not fit the schema"),
        (b"null", "the value does not fit the schema"),
        (b'{"id": "\xff\xfe", "amou', "the value is not UTF-8"),
        (b'{"id": "Jos\xe9", "at": "2026-01-01T12:00:00Z"}', "the value is not UTF-8"),
        (b"[" * 2000, "the value is not JSON"),
        # Spark's parser ignores what follows the first document.
        (b'{"at": "2026-01-01T12:00:00Z"}\n{"at": "2026-01-01T12:00:01Z"}', "the value is not JSON"),
        (b'{"at": "2026-01-01T12:00:00Z"} and more', "the value is not JSON"),
        (b'{"at": "2026-01-01T12:00:00Z"}}', "the value is not JSON"),
        (
            b'{"at": "2026-01-01T12:00:00Z"}, {"at": "2026-01-01T12:00:01Z"}',
            "the value does not fit the schema",
        ),
        (b'[{"at": "2026-01-01T12:00:00Z"}]', "the value does not fit the schema"),
        (b'{"at": "2026-01-01T12:00:00Z"}, "id": "b"}', "the value is not JSON"),
    ],
)
def test_a_bad_record_is_told_why(spark: SparkSession, value: bytes | None, reason: str) -> None:
    assert reasons(spark, entry(), value) == [reason]


def test_one_bad_record_among_good_ones_is_the_only_one_set_aside(spark: SparkSession) -> None:
    good = json.dumps({"id": "a", "amount": 3, "at": "2026-01-01T12:00:00Z"}).encode()

    assert reasons(spark, entry(), good, b"{", good) == [None, "the value is not JSON", None]


TIMES = [datetime(2026, 1, 1, tzinfo=UTC), None]
AT = '"at": "2026-01-01T12:00:00Z"'


@pytest.mark.parametrize("form", ["json", "csv"])
def test_an_event_time_is_a_column_in_any_case(spark: SparkSession, form: str) -> None:
    upper = entry(form, watermark={"event_time": "AT", "delay_threshold": "5 minutes"})
    values = {"json": [f"{{{AT}}}", "{}"], "csv": ["a,3,2026-01-01T12:00:00Z", "a,3,"]}[form]

    assert reasons(spark, upper, *(value.encode() for value in values)) == [None, "at is missing"]


def test_the_event_time_of_columns_is_a_column_in_any_case(spark: SparkSession) -> None:
    files = {"parquet": "in", "schema": {"at": "timestamp"}}
    watermark = {"event_time": "AT", "delay_threshold": "5 minutes"}
    source = SourceEntry.model_validate({**files, "watermark": watermark})

    judged = decode_rows(source, spark.createDataFrame([(time,) for time in TIMES], "at timestamp"))

    assert [row[REASON] for row in judged.orderBy("at", ascending=False).collect()] == [None, "at is missing"]


def keyed(form: str, *keys: str, **changes: Any) -> SourceEntry:
    return entry(form, drop_duplicates_within_watermark=keys, **changes)


@pytest.mark.parametrize(
    ("form", "keys", "values"),
    [
        ("json", ["id"], ['{"id": "a", AT}', '{"amount": 3, AT}', '{"id": null, AT}']),
        ("csv", ["ID"], ["a,3,2026-01-01T12:00:00Z", ",3,2026-01-01T12:00:00Z", ",,2026-01-01T12:00:00Z"]),
        ("json", ["id", "topic"], ['{"id": "a", AT}', "{AT}"]),
    ],
)
def test_a_value_without_its_deduplication_key_is_malformed(
    spark: SparkSession, form: str, keys: list[str], values: list[str]
) -> None:
    source = keyed(form, *keys, **({"keep": ["topic"]} if "topic" in keys else {}))
    first, *others = (value.replace("AT", AT).encode() for value in values)

    # A topic is never missing.
    missing = None if "topic" in keys else "id is missing"
    assert reasons(spark, source, first, *others) == [None, *[missing] * len(others)]


def test_all_deduplication_keys_are_named_if_all_are_missing(spark: SparkSession) -> None:
    values = [f'{{"amount": 3, {AT}}}', f'{{"id": "a", {AT}}}', f"{{{AT}}}", "{}"]

    judged = reasons(spark, keyed("json", "id", "amount"), *map(str.encode, values))

    assert judged == [None, None, "id, amount are missing", "at is missing"]


@pytest.mark.parametrize("is_static", [False, True])
def test_a_row_of_columns_without_its_deduplication_key_is_malformed(
    spark: SparkSession, is_static: bool
) -> None:
    source = SourceEntry.model_validate(
        {
            "parquet": "in",
            "schema": {"id": "string", "at": "timestamp"},
            "watermark": {"event_time": "at", "delay_threshold": "5 minutes"},
            "drop_duplicates_within_watermark": ["ID"],
            "static": is_static,
        }
    )
    rows = [("a", TIMES[0]), (None, TIMES[0])]

    judged = decode_rows(source, spark.createDataFrame(rows, "id string, at timestamp"))

    assert [row[REASON] for row in judged.orderBy("id", ascending=False).collect()] == [None, "id is missing"]


def test_a_source_counts_its_rows_by_an_event_time_in_another_case(spark: SparkSession) -> None:
    shop = Pipeline.model_validate(
        {
            "name": "shop",
            "sources": {"orders": entry(watermark={"event_time": "AT", "delay_threshold": "5 minutes"})},
            "queries": {"orders": {"to": {"console": {}}}},
        }
    )
    raw = spark.createDataFrame([], COLUMNS)

    assert decode(shop, "orders", raw).columns == ["id", "amount", "at"]


@pytest.mark.parametrize(
    "value",
    [
        b"a,3,2026-01-01T12:00:00Z",
        b',,"2026-01-01T12:00:00Z"',
        b'"two\nlines, one field",3,2026-01-01T12:00:00Z',
    ],
)
def test_a_good_csv_value_has_no_reason(spark: SparkSession, value: bytes) -> None:
    assert reasons(spark, entry("csv"), value) == [None]


@pytest.mark.parametrize(
    "value",
    [
        b"a,many,2026-01-01T12:00:00Z",
        b"a,3",
        b"a,3,2026-01-01T12:00:00Z,",
        b"a,3,2026-01-01T12:00:00Z\nb,4,2026-01-01T12:00:01Z",
        b'"a,3,2026-01-01T12:00:00Z',
        b"\n",
    ],
)
def test_a_malformed_csv_value_has_a_reason(spark: SparkSession, value: bytes) -> None:
    assert reasons(spark, entry("csv"), value) == ["the value does not fit the schema"]


def test_a_large_value_is_no_reason(spark: SparkSession) -> None:
    value = json.dumps({"id": "x" * 10_000_000, "amount": 1, "at": "2026-01-01T12:00:00Z"}).encode()

    assert reasons(spark, entry(), value) == [None]


def test_one_bad_record_among_many_is_found_at_its_place(spark: SparkSession) -> None:
    good = """concat('{"id": "', id, '", "amount": 3, "at": "2026-01-01T12:00:00Z"}')"""
    value = f"CAST(if(id = {BAD}, '{{\"id\": ', {good}) AS BINARY) AS value"
    place = ("'orders' AS topic", "0 AS partition", "id AS offset", "timestamp_seconds(id) AS timestamp")
    raw = spark.range(0, ROWS, numPartitions=2).selectExpr("CAST('k' AS BINARY) AS key", value, *place)

    frame = (
        decode_rows(entry(), raw)
        .where(f"{REASON} IS NOT NULL")
        .select("topic", "partition", "offset", REASON)
    )

    assert [tuple(row) for row in frame.collect()] == [("orders", 0, BAD, "the value is not JSON")]


@pytest.mark.parametrize(
    ("schema", "columns"),
    [
        (None, ["id", "amount"]),
        ({"id": "string", "amount": "int"}, ["id", "amount"]),
        ({"id": "string", "amount": "int", "_corrupt_record": "string"}, ["id", "amount", "_corrupt_record"]),
    ],
)
def test_views_see_the_columns_of_files_but_not_what_the_reader_adds(
    spark: SparkSession, schema: dict[str, str] | None, columns: list[str]
) -> None:
    source = SourceEntry.model_validate({"json": {"path": "in"}, "schema": schema, "static": True})
    raw = spark.createDataFrame([], f"id STRING, amount INT, _corrupt_record STRING, {FILE} STRING")

    assert raw.select(*select_view_columns(source, raw)).columns == columns
