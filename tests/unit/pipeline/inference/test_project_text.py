"""The spec that `init` writes, for records of which some have no event time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millstream.pipeline.inference.project_text import write_spec
from millstream.pipeline.inference.read_records import Records
from millstream.pipeline.model import Format, OnMalformed, SourceEntry
from millstream.pipeline.spec_file import load_text
from millstream.spec.expectation import Otherwise

SECOND = 1_767_225_600


def write_source(times: list[Any], **fields: Any) -> tuple[str, SourceEntry]:
    """The spec for records with these times and one without, and its source."""
    rows = [{"id": number, "time ms": time} for number, time in enumerate(times)] + [{"id": 0}]
    text = write_spec(Records(**{**TOPIC, "rows": rows, "partitions": [0] * len(rows), **fields}), "shop")
    loaded = load_text("pipeline.yml", text, Path(), {})
    assert loaded.pipeline is not None, loaded.findings
    return text, loaded.pipeline.sources["clicks"]


TOPIC: dict[str, Any] = {
    "subject": "topic clicks",
    "name": "clicks",
    "kind": "kafka",
    "settings": {"bootstrap_servers": "localhost:1", "subscribe": "clicks"},
    "format": Format.JSON,
}
FILES = {
    "kind": "parquet",
    "settings": {"path": "in"},
    "format": None,
    "columns": {"id": "bigint", "time ms": "bigint"},
}


@pytest.mark.parametrize("fields", [{}, FILES])
def test_a_record_without_a_time_that_a_view_converts_is_a_dead_letter(fields: dict[str, Any]) -> None:
    text, source = write_source([(SECOND + number) * 1000 for number in range(40)], **fields)

    expectation = source.expect["has_time"]

    assert "1 records have no such time; in a run they become dead letters." in text
    assert (expectation.that, expectation.otherwise) == ("`time ms` IS NOT NULL", Otherwise.DEAD_LETTER)


def test_a_record_without_the_time_of_the_watermark_is_a_dead_letter() -> None:
    columns = {"id": "bigint", "time ms": "timestamp"}
    times = [f"2026-01-01T12:00:{number:02}Z" for number in range(40)]

    _, source = write_source(times, **{**FILES, "columns": columns})

    assert source.watermark is not None
    assert source.on_malformed is OnMalformed.DEAD_LETTER
    assert source.expect == {}


def test_a_folder_may_have_any_name() -> None:
    _, source = write_source([SECOND], **{**FILES, "settings": {"path": "/my 😀 data"}})

    assert source.model_dump()["source"]["path"] == "/my 😀 data"
