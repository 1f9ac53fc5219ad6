"""Rows that are drawn for a proof."""

from __future__ import annotations

import base64
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.model import SourceEntry
from millstream.proof.rows import FAR, RowGenerator, unique_columns

TIME = {"type": "long", "logicalType": "timestamp-millis"}
SCHEMA = {"id": "bigint", "user_id": "string", "amount": "double", "at": "timestamp"}


def entry(**settings: Any) -> SourceEntry:
    kind = {} if "kafka" in settings else {"json": {"path": "in"}}
    value = {**kind, "schema": SCHEMA, **settings}
    return SourceEntry.model_validate(value)


def maker(seed: int = 1, **settings: Any) -> RowGenerator:
    watermark = {"event_time": "at", "delay_threshold": "4 minutes"}
    return RowGenerator("orders", entry(watermark=watermark, **settings), frozenset({"id"}), seed)


def test_the_same_seed_draws_the_same_rows() -> None:
    assert maker(7).portion(50, 0, 60) == maker(7).portion(50, 0, 60)


def test_another_seed_draws_other_rows() -> None:
    assert maker(7).portion(50, 0, 60) != maker(8).portion(50, 0, 60)


def test_no_row_is_later_than_the_watermark_allows() -> None:
    generator = maker()

    messages = [
        json.loads(input_record.value)["at"]
        for number in range(20)
        for input_record in generator.portion(50, number * 60, 60)
    ]

    newest = ""
    for at in messages:
        newest = max(newest, at)
        assert _minutes(newest) - _minutes(at) < 4


def test_rows_come_twice_only_where_the_source_drops_duplicates() -> None:
    once = [json.loads(input_record.value)["id"] for input_record in maker().portion(200, 0, 60)]
    twice = [
        json.loads(input_record.value)["id"]
        for input_record in maker(drop_duplicates_within_watermark=["id"]).portion(200, 0, 60)
    ]

    assert (len(once) == len(set(once)), len(twice) > len(set(twice))) == (True, True)


def test_records_that_cannot_be_read_come_only_where_the_source_says_what_becomes_of_them() -> None:
    strict, lenient = (
        [
            input_record
            for input_record in maker(**settings).portion(500, 0, 60)
            if not input_record.value.endswith(b"}")
        ]
        for settings in ({}, {"on_malformed": "drop"})
    )

    assert (len(strict), bool(lenient)) == (0, True)


def test_lines_and_times_have_the_formats_of_the_source() -> None:
    generator = maker(
        kafka={"bootstrap_servers": "h", "subscribe": "in"},
        format="csv",
        options={"delimiter": "||", "timestampFormat": "dd/MM/yyyy HH:mm"},
    )

    (record,) = generator.portion(1, 3600, 1)

    assert re.fullmatch(rb'1\|\|"user_id-\d+"\|\|[0-9.]+\|\|"01/01/2026 0[01]:\d\d"', record.value)


def test_lines_that_cannot_be_written_are_refused() -> None:
    generator = maker(
        kafka={"bootstrap_servers": "h", "subscribe": "in"}, format="csv", options={"quote": "", "sep": "-"}
    )

    with pytest.raises(InvalidInput, match=r"source 'orders': .* needs quotes"):
        generator.portion(1, 0, 1)


def test_options_for_messages_do_not_change_the_rows_of_files() -> None:
    generator = maker(options={"timestampFormat": "dd/MM/yyyy"})

    (record,) = generator.portion(1, 3600, 1)

    assert json.loads(record.value)["at"].startswith("2026-01-01T")


def test_a_time_format_that_cannot_be_generated_is_refused() -> None:
    generator = maker(json={"path": "in", "options": {"timestampFormat": "yyyy-Q"}})

    with pytest.raises(InvalidInput, match="source 'orders', option 'timestampFormat'"):
        generator.portion(1, 0, 1)


def test_the_last_row_is_far_in_the_future() -> None:
    (input_record,) = maker().last(1)

    assert json.loads(input_record.value)["at"].startswith(FAR)


def test_a_key_of_duplicates_tells_rows_apart() -> None:
    declared = entry(
        drop_duplicates_within_watermark=["user_id"],
        watermark={"event_time": "at", "delay_threshold": "1 minute"},
    )

    assert unique_columns(declared, frozenset()) == {"user_id", "id"}


@pytest.mark.parametrize(
    ("kinds", "unique"),
    [
        ({"line": "tinyint", "n": "int", "Shop": "STRING NOT NULL", "flag": "boolean"}, {"Shop"}),
        ({"line": "tinyint", "n": "decimal(5,2)", "day": "date"}, {"n"}),
        ({"name": "string", "event_id": "bigint"}, {"event_id"}),
        ({"flag": "boolean", "day": "date", "at": "timestamp"}, set()),
        ({"id": "date", "places": "array<string>"}, set()),
    ],
)
def test_one_column_of_a_key_of_duplicates_differs_in_each_row(
    kinds: dict[str, str], unique: set[str]
) -> None:
    declared = entry(
        schema={**kinds, "time": "timestamp"},
        drop_duplicates_within_watermark=[name.lower() for name in kinds],
        watermark={"event_time": "time", "delay_threshold": "1 minute"},
    )

    columns = unique_columns(declared, frozenset())

    row = json.loads(RowGenerator("orders", declared, columns, 1).portion(1, 0, 60)[0].value)
    assert columns == unique
    assert isinstance(row.get("flag", True), bool)
    assert row.get("day", "2025-12-31") in ("2025-12-31", "2026-01-01")


@pytest.mark.parametrize(
    ("kind", "limit", "scale"),
    [("decimal(3,2)", 10, 2), ("decimal(2,1)", 10, 1), ("decimal(4,4)", 1, 4), ("decimal(1)", 10, 0)],
)
def test_decimals_fit_their_type(kind: str, limit: int, scale: int) -> None:
    declared = entry(schema={"amount": kind})
    generator = RowGenerator("orders", declared, frozenset(), 1)

    values = [Decimal(json.loads(record.value)["amount"]) for record in generator.portion(300, 0, 60)]

    assert all(0 < value < limit and value == round(value, scale) for value in values)
    assert len(set(values)) > 2


def test_a_column_that_cannot_be_null_has_values() -> None:
    kinds = {
        "amount": "decimal(10,2) NOT NULL",
        "n": "INT not null COMMENT 'pieces'",
        "s": "string collate UTF8_LCASE",
    }
    generator = RowGenerator("orders", entry(schema=kinds), frozenset(), 1)

    row = json.loads(generator.portion(1, 0, 60)[0].value)

    assert None not in row.values()


def test_a_key_of_duplicates_has_values_of_its_type() -> None:
    kinds = {"small": "smallint", "exact": "decimal(9,0)", "raw": "binary", "text": "string"}
    generator = RowGenerator("orders", entry(schema=kinds), frozenset(kinds), 1)

    row = json.loads(generator.portion(1, 0, 60)[0].value)

    assert row == {"small": 1, "exact": 1, "raw": "b3JkZXJzLTE=", "text": "orders-1"}


@pytest.mark.parametrize(("kind", "limit"), [("decimal(3,2)", 9), ("tinyint", 127), ("short", 32_767)])
def test_a_type_with_too_few_values_for_a_key_is_refused(kind: str, limit: int) -> None:
    generator = RowGenerator("orders", entry(schema={"id": kind}), frozenset({"id"}), 1)

    rows = generator.portion(limit, 0, 60)

    assert json.loads(rows[-1].value)["id"] == limit
    with pytest.raises(InvalidInput, match=rf"column 'id' of source 'orders'.*only {limit:,} of them"):
        generator.portion(1, 0, 60)


def test_bytes_are_base64_as_readers_of_json_and_avro_take_them() -> None:
    fields = [{"name": "raw", "type": "bytes"}, {"name": "at", "type": TIME}]
    avro = {"schema": json.dumps({"type": "record", "name": "Order", "fields": fields})}
    topic = {"kafka": {"bootstrap_servers": "localhost:1", "subscribe": "orders"}}
    as_json = RowGenerator("orders", entry(schema={"raw": "binary"}), frozenset(), 1)
    as_avro = RowGenerator(
        "orders",
        SourceEntry.model_validate(
            {**topic, "format": "avro", "avro_value": avro}, context={"folder": Path()}
        ),
        frozenset(),
        1,
    )

    value = json.loads(as_json.portion(1, 0, 60)[0].value)["raw"]

    assert base64.b64decode(value, validate=True).startswith(b"raw-")
    assert b"raw-" in as_avro.portion(1, 0, 60)[0].value


def _minutes(at: str) -> float:
    """Minutes of the day; a portion or two stay inside one."""
    hours, minutes, seconds = at[11:-1].split(":")
    return int(hours) * 60 + int(minutes) + float(seconds) / 60
