"""Rows that a proof puts into folders of files and Delta tables are read as they were drawn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.api.values.sandbox import InputRecord, Sandbox
from millstream.frames.build_views import read_source
from millstream.pipeline.model import SourceEntry

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SCHEMA = {
    "id": "bigint",
    "small": "smallint",
    "user_id": "string",
    "amount": "double",
    "price": "decimal(10, 2)",
    "sold": "boolean",
    "day": "date",
    "at": "timestamp",
    "tags": "array<string>",
}
VALUES: dict[str, Any] = {
    "id": 7,
    "small": 3,
    "user_id": 'a "quoted", name',
    "amount": 2.25,
    "price": 12.75,
    "sold": True,
    "day": "2026-01-02",
    "at": "2026-01-02T03:04:05.678Z",
    "tags": None,
}
TOLD = ["7", "3", 'a "quoted", name', "2.25", "12.75", "true", "2026-01-02", "2026-01-02 03:04:05.678"]


def feed_and_read(
    entry: dict[str, Any], place: Path, spark: SparkSession, *values: dict[str, Any]
) -> list[list[str]]:
    """What is read of a source of that kind after two portions, a row as texts without its nested columns."""
    source_entry = SourceEntry.model_validate(entry)
    source = source_entry.source.in_sandbox(Sandbox(place, "proof"))
    assert source is not None
    for number, item in enumerate(values, 1):
        source.feed([InputRecord(json.dumps(item).encode())], number, source_entry.columns or {})
    rows = read_source(spark, "orders", source_entry.model_copy(update={"source": source, "static": True}))
    plain = [name for name in source_entry.columns or {"value": ""} if name != "tags"]
    return sorted(
        list(row) for row in rows.selectExpr(*(f"CAST({name} AS STRING)" for name in plain)).collect()
    )


@pytest.mark.parametrize("kind", ["parquet", "orc", "json"])
def test_every_value_of_a_row_comes_back(kind: str, tmp_path: Path, spark: SparkSession) -> None:
    entry = {kind: {"path": "in"}, "schema": SCHEMA}

    assert feed_and_read(entry, tmp_path, spark, VALUES, VALUES) == [TOLD, TOLD]


def test_every_value_of_a_row_comes_back_from_a_delta_table(tmp_path: Path, spark: SparkSession) -> None:
    schema = {name: kind for name, kind in SCHEMA.items() if name != "tags"}

    assert feed_and_read({"delta": {"path": "in"}, "schema": schema}, tmp_path, spark, VALUES, VALUES) == [
        TOLD,
        TOLD,
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"header": True, "sep": ";"},
        {"sep": "||", "options": {"quote": "'", "escape": "^"}},
        {"header": True, "sep": r"\t", "options": {"escape": '"'}},
    ],
)
def test_lines_of_csv_come_back(settings: dict[str, Any], tmp_path: Path, spark: SparkSession) -> None:
    schema = {name: kind for name, kind in SCHEMA.items() if name != "tags"}
    entry = {"csv": {"path": "in", **settings}, "schema": schema}

    assert feed_and_read(entry, tmp_path, spark, VALUES) == [TOLD]


def test_lines_of_text_come_back(tmp_path: Path, spark: SparkSession) -> None:
    actual = feed_and_read({"text": {"path": "in"}}, tmp_path, spark, {"value": "to be"}, {"value": "or not"})

    assert actual == [["or not"], ["to be"]]
