"""The batch result of a proof leaves out the rows that close windows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from local_frames import create_frame
from millstream.pipeline.model import SourceEntry
from millstream.proof.batch_result import _closes_windows
from millstream.proof.rows import RowGenerator

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TIME = {"type": "long", "logicalType": "timestamp-millis"}
FIELDS = [{"name": "user", "type": "string"}, {"name": "at", "type": TIME}]
AVRO = {"schema": json.dumps({"type": "record", "name": "Order", "fields": FIELDS})}
FORMATS: list[dict[str, Any]] = [
    {"schema": {"user": "string", "at": "timestamp"}},
    {"format": "avro", "avro_value": AVRO},
]


@pytest.mark.parametrize("settings", FORMATS, ids=["json", "avro"])
def test_rows_that_close_windows_are_known_in_each_format(
    spark: SparkSession, settings: dict[str, Any]
) -> None:
    topic = {"kafka": {"bootstrap_servers": "localhost:1", "subscribe": "orders"}}
    generator = RowGenerator("orders", SourceEntry.model_validate({**topic, **settings}), frozenset(), 1)
    records = [*generator.portion(3, 0, 60), *generator.last(0), *generator.last(10)]
    raw = create_frame(spark, [(record.key, record.value) for record in records], "key BINARY, value BINARY")

    closing = [row.closes for row in raw.select(_closes_windows(raw).alias("closes")).collect()]

    assert closing == [False, False, False, True, True]


def test_rows_of_files_that_close_windows_are_known_by_a_year_of_two_digits(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = {"csv": {"path": str(tmp_path), "options": {"timestampFormat": "dd.MM.yy HH:mm:ss.SSS"}}}
    entry = SourceEntry.model_validate({**source, "schema": {"at": "timestamp"}})
    generator = RowGenerator("orders", entry, frozenset(), 1)
    entry.source.feed([*generator.portion(3, 0, 60), *generator.last(0)], 0, {"at": "timestamp"})
    raw = entry.source.read(spark, static=True, schema=entry.ddl)

    closing = [row.closes for row in raw.select(_closes_windows(raw).alias("closes")).collect()]

    assert closing == [False, False, False, True]
