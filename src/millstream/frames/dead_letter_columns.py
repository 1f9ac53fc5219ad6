"""Build the columns of a dead letter: the record's position, its bytes, and the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.connectors.api.source import Source
from millstream.frames.expectations import (
    RAW,
    failed_names,
    is_deterministic,
    json_array,
    rejection_reason,
    row_as_json,
)
from millstream.spec.expectation import Otherwise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column

    from millstream.pipeline.model import Pipeline, SourceEntry

# The file of a row, in the columns of file sources.
FILE = "_file"
PLACE = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "file": "string",
    "timestamp": "timestamp",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key: string, value: binary>>",
}
"""The columns of a dead letter with the record's position and content, and their types."""
WHY = {"reason": "string", "expectation": "string"}
"""The columns with the reason for the dead letter."""
# The range of times that Python can represent, in any zone.
_TIME_BOUNDS = ("0001-01-02", "9999-12-30")
MALFORMED_LETTERS = "letters"
"""The field of a source's metric with its malformed records."""
# A batch hands over so many malformed records itself, each of so many bytes at most, because Spark keeps the metrics
# of a hundred batches. More are read again.
MOST_MALFORMED, MOST_MALFORMED_BYTES = 100, 4096
# The type of the letters in a metric, which contains them as a JSON array.
KEPT = f"array<struct<{', '.join(f'`{name}`: {kind}' for name, kind in {**PLACE, **WHY}.items())}>>"


def raw_columns(entry: SourceEntry, columns: Sequence[str]) -> list[str]:
    """Return those of a source's raw columns that a dead letter needs."""
    position_columns = set(PLACE) if entry.source.has_payload else set()
    return [column for column in columns if column in position_columns or column == FILE]


def position_values(
    columns: Sequence[str], value: Column | None, raw: Callable[[str], Column] = lambda name: F.col(RAW)[name]
) -> list[Column]:
    """Return the columns from topic to headers, or NULL if missing. `value` is the row's.

    `raw` returns a raw column of the record: by default from the struct `RAW`.
    """
    values = {name: raw(name) for name in PLACE if name in columns}
    if "timestamp" in values:
        # A producer may set any timestamp. One out of a reader's range would make the dead letter unreadable.
        time = values["timestamp"]
        values["timestamp"] = F.when(
            time.between(*(F.lit(bound).cast("timestamp") for bound in _TIME_BOUNDS)), time
        )
    if FILE in columns:
        values["file"] = raw(FILE)
    if value is not None:
        values["value"] = value
    return [values.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in PLACE.items()]


def encode_row(columns: Sequence[str]) -> Column:
    """Return a row as the bytes of its JSON."""
    return F.encode(row_as_json(columns), "UTF-8")


def collects_dead_letters(pipeline: Pipeline, name: str) -> bool:
    """Return whether dead letters of that source or view are collected as rows pass: they cannot be read again."""
    expect = pipeline.expected(name)
    if all(expectation.otherwise is not Otherwise.DEAD_LETTER for expectation in expect.values()):
        return False
    entry = pipeline.sources.get(name)
    return entry is None or not _can_reread(entry) or not is_deterministic(expect)


def build_dead_letter(pipeline: Pipeline, name: str, columns: Sequence[str], raw: Sequence[str]) -> Column:
    """Return the dead letter of a passing row: raw bytes if available, else the row as JSON."""
    expect = pipeline.expected(name)
    value = None if "value" in raw else encode_row(columns)
    names = failed_names(expect, Otherwise.DEAD_LETTER)
    return F.struct(
        *position_values(raw, value), rejection_reason(expect).alias("reason"), names.alias("expectation")
    )


def malformed_letters(entry: SourceEntry, columns: Sequence[str], reason: str, corrupt: str) -> Column:
    """Return an aggregate: the first malformed records of a batch as a JSON array of dead letters.

    `columns` are the source's raw columns; `reason` and `corrupt` name the columns with the reason and with the text
    of a record that could not be parsed. It has up to `MOST_MALFORMED` records of up to `MOST_MALFORMED_BYTES`.
    """
    raw = raw_columns(entry, columns)
    value = (
        None if "value" in raw else F.encode(F.col(corrupt), "UTF-8") if corrupt in columns else F.lit(None)
    )
    letter = F.struct(
        *position_values(raw, value, F.col),
        F.col(reason).alias("reason"),
        F.lit(None).cast("string").alias("expectation"),
    )
    content = [name for name in ("key", "value", "headers", corrupt) if name in columns]
    sizes = [f"coalesce(octet_length(CAST(`{name}` AS STRING)), 0)" for name in content]
    is_taken = F.expr(f"`{reason}` IS NOT NULL AND {' + '.join(sizes) or '0'} <= {MOST_MALFORMED_BYTES}")
    return json_array(letter, is_taken, MOST_MALFORMED)


def _can_reread(entry: SourceEntry) -> bool:
    has_ranges = type(entry.source).read_range is not Source.read_range
    return has_ranges and (entry.source.has_payload or entry.ddl is not None)
