"""The input of a proof: files for each source of a script, which the script and the project both read."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from millstream.checking.sample_rows.generated_rows import RowPlan, build_message, build_row, plan_rows
from millstream.connectors import spark_formats
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from millstream.checking.sample_rows.column_hints import ColumnHints
    from millstream.checking.scripts.interception.recording import Recording, SourceRead

# Options that decide how the text of a file is written and read.
_TEXT_OPTIONS = ("header", "sep", "delimiter", "quote", "escape", "dateFormat", "timestampFormat", "lineSep")
# The column by which rows are written to the file of their batch; no file has it.
_BATCH = "__batch"
# Columns of a topic that are not its messages.
_MESSAGE = "value"
# Modification times, in seconds: Spark reads older files first.
_FIRST_TIME = 1_700_000_000


@dataclass(frozen=True)
class SourceFiles:
    """The files of one source."""

    folder: Path
    format: str
    schema: t.StructType
    options: Mapping[str, str]
    rows: int

    def read(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """Return the rows: as a stream one file a batch, oldest first."""
        session = internals.java_session(spark)
        reader = session.readStream() if streaming else session.read()
        reader = reader.format(self.format).schema(session.parseDataType(self.schema.json()))
        for key, value in {**self.options, "maxFilesPerTrigger": "1"}.items():
            reader = reader.option(key, value)
        return DataFrame(reader.load(str(self.folder)), spark)


def write_input(
    spark: SparkSession, recording: Recording, hints: ColumnHints, folder: Path, samples: Mapping[str, Path]
) -> dict[str, SourceFiles]:
    """Write files for each source whose columns are known, and return them by the name of the source.

    `samples` are files with rows that are used in place of generated ones: files of a source of files, or one
    message a line.
    """
    result: dict[str, SourceFiles] = {}
    for name, source in recording.sources.items():
        schema = recording.schemas.get(name)
        if schema is None:
            continue
        is_files = source.format in spark_formats.FILE_METHODS
        options = {key: source.options[key] for key in _TEXT_OPTIONS if is_files and key in source.options}
        place = folder / f"{len(result)}"
        place.mkdir(parents=True)
        kind = source.format if is_files else spark_formats.DEFAULT
        files = SourceFiles(place, kind, schema, options, 0)
        sample = samples.get(name)
        if sample is not None and is_files:
            _copy_files(sample, place)
            result[name] = files
            continue
        messages = sample.read_bytes().splitlines() if sample is not None else None
        batches = _rows_of(source, schema, hints, messages)
        _write_files(spark, files, batches)
        result[name] = SourceFiles(place, kind, schema, options, sum(len(rows) for rows in batches))
    return result


def _rows_of(
    source: SourceRead, schema: t.StructType, hints: ColumnHints, messages: Sequence[bytes] | None
) -> list[list[tuple[Any, ...]]]:
    """Return the rows of each file."""
    planned = plan_rows()
    if messages is not None:
        size = max(1, -(-len(messages) // len(planned)))
        starts = range(0, len(messages), size)
        planned = [
            [RowPlan(number, planned[0][0].time) for number in range(start, min(start + size, len(messages)))]
            for start in starts
        ]
    if not source.is_streaming:
        planned = [[row for rows in planned for row in rows[:1]]]
    batches = []
    for rows in planned:
        batch = []
        for row in rows:
            values = dict(zip(schema.names, build_row(schema, row, hints), strict=True))
            message = schema[_MESSAGE].dataType if _MESSAGE in schema.names else None
            if isinstance(message, t.BinaryType | t.StringType):
                body = messages[row.number] if messages else build_message(hints.message, row, hints)
                values[_MESSAGE] = body if isinstance(message, t.BinaryType) else body.decode()
            for name, value in _POSITION.items():
                if source.format == spark_formats.KAFKA and name in values:
                    values[name] = source.options.get("subscribe", "topic") if value is None else value
            batch.append(tuple(values[name] for name in schema.names))
        batches.append(batch)
    return batches


# Columns of a record that say where it is; the topic is that of the source.
_POSITION = {"topic": None, "partition": 0, "timestampType": 0}


def _write_files(
    spark: SparkSession, files: SourceFiles, batches: Sequence[Sequence[tuple[Any, ...]]]
) -> None:
    """Write a file for each batch, all in one job, with modification times in the order of the batches."""
    parts = files.folder.parent / "parts"
    rows = [(number, *row) for number, batch in enumerate(batches) for row in batch]
    schema = t.StructType([t.StructField(_BATCH, t.IntegerType()), *files.schema.fields])
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    writer = internals.java_frame(frame).write().format(files.format).mode("overwrite")
    for key, value in files.options.items():
        writer = writer.option(key, value)
    writer.partitionBy(internals.scala_seq(spark, [_BATCH])).save(str(parts))
    for number in (number for number, batch in enumerate(batches) if batch):
        (written,) = (parts / f"{_BATCH}={number}").glob("part-*")
        _place(written, files.folder, number)
    shutil.rmtree(parts)


def _copy_files(sample: Path, folder: Path) -> None:
    """Copy a file, or the files of a folder in the order of their names."""
    for number, file in enumerate(sorted(sample.iterdir()) if sample.is_dir() else [sample]):
        if file.is_file():
            copy = folder.parent / file.name
            shutil.copy(file, copy)
            _place(copy, folder, number)


def _place(file: Path, folder: Path, number: int) -> None:
    target = folder / f"{number:03}{file.suffix}"
    file.rename(target)
    os.utime(target, (_FIRST_TIME + number, _FIRST_TIME + number))
