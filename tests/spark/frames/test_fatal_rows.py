"""A row that must end the query does so whatever the conditions of the views above it are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from millstream.connectors.files.source import FILE
from millstream.frames.build_views import build_frames
from millstream.frames.decode import CORRUPT
from millstream.pipeline.model import Pipeline
from millstream.spark.streaming.code_generation import FACTORY, WHOLE_STAGE
from small_batches import changed_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

MESSAGES = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
KAFKA = {"bootstrap_servers": "localhost:9092", "subscribe": "orders"}
BIG = "SELECT id, amount FROM orders WHERE amount > 10"
FAILS = {"expect": {"known": {"that": "id IS NOT NULL", "otherwise": "fail"}}}


@pytest.fixture(params=["NO_CODEGEN", "FALLBACK"], autouse=True)
def evaluation(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Both ways in which Spark evaluates the conditions of a filter: interpreted, and in generated code."""
    is_compiled = request.param == "FALLBACK"
    with changed_settings(spark, {WHOLE_STAGE: str(is_compiled).lower(), FACTORY: request.param}):
        yield


def view_of(spark: SparkSession, source: dict[str, Any], raw: DataFrame, sql: str) -> DataFrame:
    """The rows of a view over the source `orders`, whose raw rows are given."""
    pipeline = Pipeline.model_validate(
        {
            "name": "shop",
            "sources": {"orders": {"schema": {"id": "string", "amount": "int"}, **source}},
            "views": {"big": {"sql": sql}},
            "queries": {"big": {"to": {"console": {}}}},
        }
    )
    return build_frames(spark, pipeline, lambda _name, _entry: raw)["big"]


def messages(spark: SparkSession, *values: bytes) -> DataFrame:
    rows = [(None, bytearray(value), "orders", 0, offset, None) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, MESSAGES)


@pytest.mark.parametrize("more", [{}, {"watermark": {"event_time": "at", "delay_threshold": "1 minute"}}])
def test_a_malformed_message_that_a_view_would_leave_out_ends_the_query(
    spark: SparkSession, more: dict[str, Any]
) -> None:
    schema = {"id": "string", "amount": "int", "at": "timestamp"}
    raw = messages(spark, b'{"id": "a", "amount": 11, "at": "2026-01-01T12:00:00Z"}', b"{broken")

    rows = view_of(spark, {"kafka": KAFKA, "format": "json", **more, "schema": schema}, raw, BIG)

    with pytest.raises(PySparkException, match=r"malformed record in source 'orders': .*offset 1"):
        rows.collect()


def test_a_malformed_record_of_a_static_source_ends_the_query(spark: SparkSession) -> None:
    columns = f"id STRING, amount INT, {CORRUPT} STRING, {FILE} STRING"
    raw = spark.createDataFrame([("a", 11, None, "f"), (None, None, "{broken", "f")], columns)

    rows = view_of(spark, {"json": {"path": "in"}, "static": True}, raw, BIG)

    with pytest.raises(PySparkException, match="malformed record in source 'orders'"):
        rows.collect()


@pytest.mark.parametrize("condition", ["id <> 'bot'", "amount > 10"])
def test_a_row_that_fails_an_expectation_and_that_a_view_would_leave_out_ends_the_query(
    spark: SparkSession, condition: str
) -> None:
    raw = messages(spark, b'{"id": "a", "amount": 11}', b'{"amount": 3}')
    sql = f"SELECT id, amount FROM orders WHERE {condition}"

    rows = view_of(spark, {"kafka": KAFKA, "format": "json", **FAILS}, raw, sql)

    with pytest.raises(PySparkException, match="expectation 'known' of source 'orders' does not hold"):
        rows.collect()


def test_rows_that_fail_nothing_are_left_out_by_the_conditions_of_a_view_alone(spark: SparkSession) -> None:
    raw = messages(spark, b'{"id": "a", "amount": 11}', b'{"id": "b", "amount": 3}', b'{"id": "c"}')

    rows = view_of(spark, {"kafka": KAFKA, "format": "json", **FAILS}, raw, BIG)

    assert [tuple(row) for row in rows.collect()] == [("a", 11)]
