"""Build the columns of a dead letter: the record's position, its bytes, and the reason."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.connectors.api.source import Source
from millstream.frames.expectations import (
    RAW,
    failed_names,
    is_dead_letter,
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
# The range of times that Python can represent, in any zone.
_TIME_BOUNDS = ("0001-01-02", "9999-12-30")
MALFORMED_LETTERS = "letters"
"""The field of a source's metric with its malformed records."""
# A batch hands over so many malformed records of a source itself, and as many rows that fail expectations, each of so
# many bytes at most, in a text of so many characters: tasks collect them in memory, and Spark keeps the metrics of
# the last batches. More are read again.
MOST_HANDED_OVER, MOST_HANDED_OVER_BYTES, MOST_HANDED_OVER_TEXT = 5_000, 4096, 2_000_000
MOST_COLLECTED = 100_000
"""The number of dead letters of a batch that are collected if rows cannot be read again: the limit of `max_by`."""


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


def broken_letters(
    pipeline: Pipeline, name: str, columns: Sequence[str], raw: Sequence[str]
) -> Column | None:
    """Return an aggregate: rows that become dead letters, as a JSON array; None if no expectation makes dead letters.

    It has all of them if they cannot be read again, else the first few. The value of a dead letter is the raw one if
    available, else the row as JSON.
    """
    expect = pipeline.expected(name)
    if all(expectation.otherwise is not Otherwise.DEAD_LETTER for expectation in expect.values()):
        return None
    value = None if "value" in raw else encode_row(columns)
    names = failed_names(expect, Otherwise.DEAD_LETTER)
    letter = F.struct(
        *position_values(raw, value), rejection_reason(expect).alias("reason"), names.alias("expectation")
    )
    if collects_dead_letters(pipeline, name):
        # Not collect_list, which has no limit: a batch of broken rows would exhaust the driver's memory.
        return json_array(letter, is_dead_letter(expect), MOST_COLLECTED)
    return _few_letters(letter, is_dead_letter(expect))


def malformed_letters(entry: SourceEntry, columns: Sequence[str], reason: str, corrupt: str) -> Column:
    """Return an aggregate: the first malformed records of a batch as a JSON array of dead letters.

    `columns` are the source's raw columns; `reason` and `corrupt` name the columns with the reason and with the text
    of a record that could not be parsed.
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
    return _few_letters(letter, F.col(reason).isNotNull())


def _few_letters(letter: Column, is_taken: Column) -> Column:
    """Return an aggregate: up to `MOST_HANDED_OVER` dead letters of up to `MOST_HANDED_OVER_BYTES`, as a JSON array.

    A text of more than `MOST_HANDED_OVER_TEXT` characters is cut after one more.
    """
    sizes = (
        F.coalesce(F.octet_length(letter[name].cast("string")), F.lit(0))
        for name in ("key", "value", "headers")
    )
    is_small = reduce(add, sizes) <= MOST_HANDED_OVER_BYTES
    return F.substring(
        json_array(letter, is_taken & is_small, MOST_HANDED_OVER), 1, MOST_HANDED_OVER_TEXT + 1
    )


def _can_reread(entry: SourceEntry) -> bool:
    has_ranges = type(entry.source).read_range is not Source.read_range
    return has_ranges and (entry.source.has_payload or entry.ddl is not None)
