"""The input of a proof: a file for each batch, oldest first, with the columns of the source alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from millstream.checking.sample_rows.column_hints import ColumnHints
from millstream.checking.sample_rows.generated_rows import plan_rows
from millstream.checking.scripts.interception.recording import Recording, SourceRead
from millstream.proof.migration.input_files import write_input

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_each_batch_is_a_file_and_the_earlier_one_is_older(spark: SparkSession, tmp_path: Path) -> None:
    schema = StructType.fromDDL("page STRING, at TIMESTAMP")
    source = SourceRead("views", "json", {}, None, is_streaming=True)
    recording = Recording(sources={"views": source}, schemas={"views": schema})

    files = write_input(spark, recording, ColumnHints(), tmp_path, {})["views"]

    written = sorted(files.folder.iterdir(), key=lambda file: file.stat().st_mtime)
    batches = [[json.loads(line) for line in file.read_text().splitlines()] for file in written]
    planned = [[row.time.isoformat()[:19] for row in rows] for rows in plan_rows()]
    assert [[row["at"][:19] for row in rows] for rows in batches] == planned
    assert {key for rows in batches for row in rows for key in row} == {"page", "at"}
    assert files.rows == sum(map(len, planned))


def test_a_table_without_rows_has_no_file(spark: SparkSession, tmp_path: Path) -> None:
    source = SourceRead("pages", "kafka", {}, None, is_streaming=False)
    schema = StructType.fromDDL("value STRING")
    sample = tmp_path / "empty"
    sample.touch()
    recording = Recording(sources={"pages": source}, schemas={"pages": schema})

    files = write_input(spark, recording, ColumnHints(), tmp_path / "in", {"pages": sample})["pages"]

    assert files.rows == 0
    assert files.read(spark, streaming=False).collect() == []
