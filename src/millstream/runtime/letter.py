"""What a dead letter holds: where the record stands, its bytes, and why it was set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.connectors.source import Source
from millstream.runtime.expect import RAW, names_of, reason_of, row_of, stable
from millstream.spec.expectation import Otherwise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

    from millstream.pipeline.model import Pipeline, SourceEntry

# Where a row of a file stands, in the columns that sources of files give.
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
"""The columns of a letter that say where the record stands and what it was, and their types."""
WHY = {"reason": "string", "expectation": "string"}
"""The columns that say why it was set aside."""
# The times that Python can tell, in any zone.
_TIMES = ("0001-01-02", "9999-12-30")
# What a metric hands over: letters as a JSON array.
KEPT = f"array<struct<{', '.join(f'`{name}`: {kind}' for name, kind in {**PLACE, **WHY}.items())}>>"


def raw_columns(entry: SourceEntry, columns: Sequence[str]) -> list[str]:
    """Those of a source's raw columns that a letter is made of."""
    wanted = set(PLACE) if entry.source.payload else set()
    return [column for column in columns if column in wanted or column == FILE]


def place(columns: Sequence[str], value: Column | None) -> list[Column]:
    """Topic to headers, from those columns of the struct `RAW`; NULL where there is none. `value` is the row's."""
    found = {name: F.col(RAW)[name] for name in PLACE if name in columns}
    if "timestamp" in found:
        # A producer may say any time; one that no calendar of a reader has would keep the letter from being read.
        time = found["timestamp"]
        found["timestamp"] = F.when(time.between(*(F.lit(one).cast("timestamp") for one in _TIMES)), time)
    if FILE in columns:
        found["file"] = F.col(RAW)[FILE]
    if value is not None:
        found["value"] = value
    return [found.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in PLACE.items()]


def as_bytes(columns: Sequence[str]) -> Column:
    """A row as the bytes of its JSON."""
    return F.encode(row_of(columns), "UTF-8")


def passing(pipeline: Pipeline, name: str) -> bool:
    """Are rows of that source or view kept as they pass, because they cannot be read again?"""
    expect = pipeline.expected(name)
    if all(one.otherwise is not Otherwise.DEAD_LETTER for one in expect.values()):
        return False
    entry = pipeline.sources.get(name)
    return entry is None or not _rereads(entry) or not stable(expect)


def of_row(pipeline: Pipeline, name: str, columns: Sequence[str], raw: Sequence[str]) -> Column:
    """The letter of a row that is set aside as it passes: raw bytes where they are at hand, else the row as JSON."""
    expect = pipeline.expected(name)
    value = None if "value" in raw else as_bytes(columns)
    names = names_of(expect, Otherwise.DEAD_LETTER)
    return F.struct(*place(raw, value), reason_of(expect).alias("reason"), names.alias("expectation"))


def _rereads(entry: SourceEntry) -> bool:
    able = type(entry.source).read_range is not Source.read_range
    return able and (entry.source.payload or entry.ddl is not None)
