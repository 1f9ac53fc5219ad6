"""Generate random rows for a declared schema; the same seed generates the same rows."""

from __future__ import annotations

import base64
import json
import math
import random
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from millstream.connectors.api.csv_text import UnwritableText, format_line
from millstream.connectors.api.ddl import find_column
from millstream.connectors.api.values.sandbox import InputRecord
from millstream.connectors.api.values.time_pattern import format_time
from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.model import Format, OnMalformed
from millstream.spec.avro.encoding import encode_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.pipeline.model import SourceEntry

# Event times of the rows that close all windows. No generated row has them, so that the batch result can be
# computed without them.
FAR = "2999-12-31T"
# Their first year, as read by Spark: a pattern with a year of two digits writes 2099, and zones differ by hours.
FAR_YEAR = 2098
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
# One row in TWICE is repeated, and one in BROKEN is malformed, if the spec configures how to treat such rows.
TWICE, BROKEN = 20, 50
# Distinct values of a key column: few enough that rows share keys, many enough that keys differ.
POOL = 50
_TIMES = ("timestamp", "timestamp_ntz", "timestamp_ltz")
_FORMAT_OPTIONS = {"date": "dateFormat", "timestamp_ntz": "timestampNTZFormat"}
_FLOATS = ("float", "double", "real")
# Integers with their bits.
_INTEGERS = {
    **dict.fromkeys(("tinyint", "byte"), 8),
    **dict.fromkeys(("smallint", "short"), 16),
    **dict.fromkeys(("int", "integer"), 32),
    **dict.fromkeys(("bigint", "long"), 64),
}
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_TEXT = re.compile(r"(?:string|binary|varchar|char)\b")
_CONSTRAINT = re.compile(r"\s+(?:not\s+null|comment|collate)\b.*", re.IGNORECASE | re.DOTALL)
_OTHER_QUERIES = "prove queries of other sources: millstream prove QUERY"


class RowGenerator:
    """Generates the rows of one source. `unique` are the columns whose values are different in every row."""

    def __init__(self, name: str, entry: SourceEntry, unique: frozenset[str], seed: int) -> None:
        self.name = name
        self.entry = entry
        self.unique = unique
        self.chance = random.Random(f"{seed}/{name}")  # noqa: S311 - not used for secrets
        self.number = 0
        options = entry.options if entry.source.has_payload else getattr(entry.source, "options", {})
        self.options = {name.lower(): value for name, value in options.items()}
        watermark = entry.watermark
        self.times = [column for column, kind in self.columns.items() if kind in _TIMES]
        if watermark is not None and (time := find_column(watermark.event_time, self.times)):
            self.times.insert(0, time)
        self.delay = watermark.delay_threshold.seconds if watermark else 60.0

    @property
    def columns(self) -> dict[str, str]:
        """The columns with their types in lower case."""
        return {name: kind.strip().lower() for name, kind in generated_columns(self.entry).items()}

    def portion(self, rows: int, begin: float, seconds: float) -> list[InputRecord]:
        """Generate rows with event times in this interval after the start, in seconds, slightly out of order."""
        records: list[InputRecord] = []
        for index in range(rows):
            jitter = self.chance.random() * min(self.delay / 4, begin + seconds)
            moment = BEGIN.timestamp() + begin + seconds * index / rows - jitter
            text = datetime.fromtimestamp(round(moment, 3), UTC).isoformat(timespec="milliseconds")
            record = self._encoded(self._values(text.replace("+00:00", "Z")))
            records.append(record)
            if self.entry.drop_duplicates_within_watermark and self.chance.random() < 1 / TWICE:
                records.append(record)
            if self.entry.on_malformed is not OnMalformed.FAIL and self.chance.random() < 1 / BROKEN:
                records.append(InputRecord(b'{"cut off', record.key))
        return records

    def last(self, minute: int) -> list[InputRecord]:
        """Generate one row far in the future that closes all windows; none if rows have no time.

        A message has the time as its key too, because values in Avro do not contain it as text.
        """
        if not self.times:
            return []
        time = f"{FAR}00:{minute:02}:00.000Z"
        return [InputRecord(self._encoded(self._values(time)).value, time.encode())]

    def _values(self, time: str) -> dict[str, Any]:
        self.number += 1
        return {name: self._value(name, kind, time) for name, kind in self.columns.items()}

    def _value(self, name: str, kind: str, time: str) -> Any:
        chance = self.chance
        if kind in _TIMES:
            return self._time_text(kind, time)
        if name in self.unique:
            is_number = kind in (*_INTEGERS, *_FLOATS) or _DECIMAL.fullmatch(kind)
            return self._number_of_row(name, kind) if is_number else _text(f"{self.name}-{self.number}", kind)
        if kind in ("string", "binary"):
            return _text(f"{name}-{chance.randrange(POOL)}", kind)
        if kind in _INTEGERS:
            return chance.randrange(1, POOL)
        if kind in _FLOATS:
            return self._fraction(POOL, 4)
        if decimal := _DECIMAL.fullmatch(kind):
            # The part of a whole number that the digits after the point can express.
            parts = {0: 1, 1: 2}.get(int(decimal[2] or 0), 4)
            return self._fraction(min(POOL, 10 ** _whole_digits(decimal)), parts)
        if kind == "boolean":
            return chance.random() < 0.5
        return self._time_text(kind, time[:10]) if kind == "date" else None

    def _number_of_row(self, name: str, kind: str) -> int:
        """Return the number of the row, for a column of distinct values. Raises `InvalidInput` if it does not fit."""
        limit = _count_values(kind)
        if self.number >= limit:
            raise InvalidInput(
                f"column '{name}' of source '{self.name}' needs another value in each row, and {kind} has only "
                f"{limit - 1:,} of them",
                f"generate fewer rows with --rows, or {_OTHER_QUERIES}",
            )
        return self.number

    def _time_text(self, kind: str, time: str) -> str:
        """Return a time in the format that the source's options set. Raises `InvalidInput` for an unsupported one."""
        option = _FORMAT_OPTIONS.get(kind, "timestampFormat")
        pattern = self.options.get(option.lower())
        if not pattern:
            return time
        try:
            return format_time(datetime.fromisoformat(time).replace(tzinfo=UTC), str(pattern))
        except ValueError as error:
            raise InvalidInput(
                f"no times can be generated for source '{self.name}', option '{option}': {error}",
                _OTHER_QUERIES,
            ) from error

    def _fraction(self, end: int, parts: int) -> float:
        """Draw a number below `end` that is exact in binary, so that sums are the same in any order."""
        return self.chance.randrange(parts if end > 1 else 1, parts * end) / parts

    def _encoded(self, values: dict[str, Any]) -> InputRecord:
        key = next((str(value) for name, value in values.items() if name not in self.unique), "")
        if self.entry.source.has_payload and self.entry.format is Format.CSV:
            try:
                line = format_line(values.values(), self.entry.options)
            except UnwritableText as error:
                raise unwritable_rows(self.name, error) from error
            return InputRecord(line.encode(), key.encode())
        if self.entry.avro_value is not None:
            return InputRecord(encode_row(self.entry.avro_value, values), key.encode())
        return InputRecord(json.dumps(values).encode(), key.encode())


def unwritable_rows(source: str, error: UnwritableText) -> InvalidInput:
    """Return the error for rows that cannot be written with the options of their source."""
    return InvalidInput(f"no rows can be generated for source '{source}': {error}", _OTHER_QUERIES)


def _count_values(kind: str) -> float:
    """Return how many different values a column of texts or numbers can have, with 0; 0 for another type."""
    if _TEXT.match(kind):
        return math.inf
    if decimal := _DECIMAL.fullmatch(kind):
        return int(10 ** _whole_digits(decimal))
    return 2 ** (_INTEGERS.get(kind, 64) - 1) if kind in (*_INTEGERS, *_FLOATS) else 0


def _whole_digits(decimal: re.Match[str]) -> int:
    """Return the number of digits before the point."""
    return int(decimal[1] or 10) - int(decimal[2] or 0)


def _text(text: str, kind: str) -> str:
    """Return a text for a column. Encoders take base64 for BINARY."""
    return base64.b64encode(text.encode()).decode() if kind == "binary" else text


def generated_columns(entry: SourceEntry) -> Mapping[str, str]:
    """Return the columns of generated rows: the source's schema, or the only column of a kind that has just one.

    Their types are without NOT NULL, COMMENT and COLLATE.
    """
    if entry.columns is not None or entry.source.columns is None:
        return {name: _CONSTRAINT.sub("", kind) for name, kind in (entry.columns or {}).items()}
    names = entry.source.columns.split()
    return {names[0]: names[1]} if len(names) == 2 else {}


def unique_columns(entry: SourceEntry, keys: frozenset[str]) -> frozenset[str]:
    """Return columns that differ in each row: `id`, sink keys that look like ids, and one of the deduplication key.

    The latter is the one with the most values. Only texts and numbers are considered: the values of the other types
    are drawn from a few, or are times.
    """
    counts = {
        name: count
        for name, kind in generated_columns(entry).items()
        if (count := _count_values(kind.strip().lower()))
    }
    id_columns = {name for name in counts if re.fullmatch(r"id|uuid|event_?id", name.lower())}
    key = [name for column in entry.drop_duplicates_within_watermark if (name := find_column(column, counts))]
    widest = max(key, key=lambda name: (name in id_columns, counts[name]), default=None)
    return frozenset({*(id_columns & (keys | id_columns)), *([widest] if widest else [])})
