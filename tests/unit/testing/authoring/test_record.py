"""Real records as the feed of a test: columns where they can be read, else the message as it came."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.load.loader import load_text
from millstream.testing.authoring import record
from millstream.testing.authoring.record import choose_query, find_source, format_test
from millstream.testing.files.loader import load_text as load_tests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.pipeline.model import Pipeline, SourceEntry

SPEC = """\
name: shop
sources:
  clicks:
    kafka: {bootstrap_servers: h, subscribe: web-clicks}
    schema: {id: string, n: int, at: timestamp}
    keep: [key]
  lines: {json: data, schema: {id: string, at: timestamp}}
  files: {parquet: data, schema: {payload: binary}}
  timed:
    kafka: {bootstrap_servers: h, subscribe: timed}
    format: raw
    keep: [timestamp]
  both: {rate: {}}
views: {joined: SELECT c.id FROM clicks c JOIN lines l ON c.id = l.id}
queries:
  clicks: {to: {console: {}}}
  joined: {to: {console: {}}}
"""


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    actual = load_text("pipeline.yml", SPEC, Path("/nowhere"), {}).pipeline
    assert actual is not None
    return actual


def message(value: bytes | None) -> dict[str, Any]:
    return {
        "key": bytearray(b"k"),
        "value": None if value is None else bytearray(value),
        "topic": "web-clicks",
        "partition": 1,
        "offset": 7,
        "timestamp": datetime(2026, 1, 1, tzinfo=UTC),
        "timestampType": 0,
    }


def to_feed_item(entry: SourceEntry, row: Mapping[str, Any], zone: str = "UTC") -> dict[str, Any]:
    return record.to_feed_item(entry, row, zone)


def test_a_message_that_fits_the_schema_is_a_row(pipeline: Pipeline) -> None:
    value = b'{"id": "a", "n": 1, "at": "2026-01-01T12:00:00Z", "more": 1}'

    row = to_feed_item(pipeline.sources["clicks"], message(value))

    assert row == {"id": "a", "n": 1, "at": "2026-01-01T12:00:00Z", "key": "k"}


@pytest.mark.parametrize("value", [b"{broken", b'{"id": "a", "n": "one"}', b"\xff", b"[1]", b"{}", None])
def test_any_other_message_is_kept_as_it_is(value: bytes | None, pipeline: Pipeline) -> None:
    row = to_feed_item(pipeline.sources["clicks"], message(value))

    assert set(row) == {"record"}
    assert (row["record"]["key"], row["record"]["partition"]) == ("k", 1)


@pytest.mark.parametrize(
    ("key", "field"),
    [
        (b"\xff\x00", {"key_base64": "/wA="}),
        ((7).to_bytes(8), {"key": "\0" * 7 + "\a"}),
        (b"a\tb", {"key": "a\tb"}),
    ],
)
def test_a_message_whose_key_is_no_text_is_kept_as_it_is(
    key: bytes, field: dict[str, str], pipeline: Pipeline
) -> None:
    row = to_feed_item(pipeline.sources["clicks"], {**message(b'{"id": "a"}'), "key": bytearray(key)})

    assert row["record"].items() >= field.items()


def test_a_message_has_its_time_if_the_source_keeps_it(pipeline: Pipeline) -> None:
    timed, clicks = (
        to_feed_item(pipeline.sources[name], message(b"{broken"))["record"] for name in ("timed", "clicks")
    )

    assert (timed["timestamp"], clicks.get("timestamp")) == ("2026-01-01 00:00:00", None)


def test_times_in_the_format_of_the_source_are_kept_in_the_message(pipeline: Pipeline) -> None:
    clicks = pipeline.sources["clicks"].model_copy(update={"options": {"timestampFormat": "dd/MM/yyyy"}})

    row = to_feed_item(clicks, message(b'{"id": "a", "at": "2026-01-01"}'))

    assert row["record"]["value"] == '{"id": "a", "at": "2026-01-01"}'


@pytest.mark.parametrize(
    ("text", "zone", "columns"),
    [
        ("2026-01-01 12:00:00", "UTC", {"at", "key"}),
        ("2026-01-01T12:00:00Z", "Asia/Tokyo", {"at", "key"}),
        ("2026-01-01 12:00:00", "Asia/Tokyo", {"record"}),
    ],
)
def test_a_time_without_a_zone_is_a_column_if_spark_reads_it_in_utc(
    text: str, zone: str, columns: set[str], pipeline: Pipeline
) -> None:
    value = f'{{"at": "{text}"}}'.encode()

    assert set(to_feed_item(pipeline.sources["clicks"], message(value), zone)) == columns


def test_names_in_another_case_are_left_out_as_in_a_run(pipeline: Pipeline) -> None:
    row = to_feed_item(pipeline.sources["clicks"], message(b'{"ID": "a", "n": 1}'))

    assert row == {"n": 1, "key": "k"}


def test_bytes_of_files_are_base64(pipeline: Pipeline) -> None:
    assert to_feed_item(pipeline.sources["files"], {"payload": b"abcd"}) == {"payload": "YWJjZA=="}


def test_rows_of_files_are_rows(pipeline: Pipeline) -> None:
    row = to_feed_item(pipeline.sources["lines"], {"id": "a", "at": datetime(2026, 1, 1, 12, tzinfo=UTC)})

    assert row == {"id": "a", "at": "2026-01-01 12:00:00"}


def test_a_source_is_named_by_itself_or_its_topic(pipeline: Pipeline) -> None:
    assert find_source(pipeline, "clicks") == find_source(pipeline, "web-clicks") == "clicks"
    with pytest.raises(InvalidInput, match="there is no source or topic 'carts'"):
        find_source(pipeline, "carts")


def test_the_query_is_the_only_one_that_reads_the_source_or_is_named(pipeline: Pipeline) -> None:
    assert choose_query(pipeline, "lines", None) == "joined"
    assert choose_query(pipeline, "clicks", "clicks") == "clicks"
    with pytest.raises(InvalidInput, match="queries clicks, joined read source 'clicks'"):
        choose_query(pipeline, "clicks", None)
    with pytest.raises(InvalidInput, match="no query reads source 'both'"):
        choose_query(pipeline, "both", None)


def test_what_is_written_can_be_read_as_a_test(pipeline: Pipeline) -> None:
    items = [
        to_feed_item(pipeline.sources["clicks"], message(value))
        for value in (b'{"id": "$a"}', b"{broken", b"\xff", None)
    ]

    text = f"{SPEC_AS_TEST}{format_test('the newest', 'clicks', 'clicks', items)}"
    (case,) = load_tests("t.yml", text, Path("/nowhere/t.yml"), lambda _: {}, filling=True).cases

    assert case.steps[0].expected.rows == {"": ()}


SPEC_AS_TEST = "pipeline:\n" + "".join(f"  {line}\n" for line in SPEC.splitlines())
