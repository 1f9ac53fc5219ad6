"""Rows drawn from a declared schema: the same seed gives the same rows."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from millstream.connectors.elsewhere import Fed
from millstream.pipeline.model import Format, OnMalformed
from millstream.spec.avro_bytes import encoded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.pipeline.model import SourceEntry

# Event times of the rows that close every window; no drawn row has them, so that an answer without them can be made.
FAR = "2999-12-31T"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
# One row in so many comes twice, or cannot be read, where the spec says what becomes of those.
TWICE, BROKEN = 20, 50
# Values of one key column: few enough that rows meet, many enough that they differ.
POOL = 50
_TIMES = ("timestamp", "timestamp_ntz", "timestamp_ltz")


class Maker:
    """Draws the rows of one source. `unique` are columns that tell one row from every other."""

    def __init__(self, name: str, entry: SourceEntry, unique: frozenset[str], seed: int) -> None:
        self.name = name
        self.entry = entry
        self.unique = unique
        self.chance = random.Random(f"{seed}/{name}")  # noqa: S311 - nothing secret hangs on it
        self.number = 0
        watermark = entry.watermark
        self.times = [column for column, kind in self.columns.items() if kind in _TIMES]
        if watermark is not None and watermark.event_time in self.times:
            self.times.insert(0, watermark.event_time)
        self.delay = watermark.delay_threshold.seconds if watermark else 60.0

    @property
    def columns(self) -> dict[str, str]:
        """The columns with types in small letters."""
        return {name: kind.strip().lower() for name, kind in drawn(self.entry).items()}

    def portion(self, rows: int, begin: float, seconds: float) -> list[Fed]:
        """So many rows whose events happened in these seconds after the beginning, slightly out of order."""
        made: list[Fed] = []
        for at in range(rows):
            wobble = self.chance.random() * min(self.delay / 4, begin + seconds)
            moment = BEGIN.timestamp() + begin + seconds * at / rows - wobble
            text = datetime.fromtimestamp(round(moment, 3), UTC).isoformat(timespec="milliseconds")
            fed = self._encoded(self._values(text.replace("+00:00", "Z")))
            made.append(fed)
            if self.entry.drop_duplicates_within_watermark and self.chance.random() < 1 / TWICE:
                made.append(fed)
            if self.entry.on_malformed is not OnMalformed.FAIL and self.chance.random() < 1 / BROKEN:
                made.append(Fed(b'{"cut off', fed.key))
        return made

    def last(self, minute: int) -> list[Fed]:
        """One row far in the future, which closes all windows before it; none where rows have no time."""
        return [self._encoded(self._values(f"{FAR}00:{minute:02}:00.000Z"))] if self.times else []

    def _values(self, time: str) -> dict[str, Any]:
        self.number += 1
        return {name: self._value(name, kind, time) for name, kind in self.columns.items()}

    def _value(self, name: str, kind: str, time: str) -> Any:
        draw = self.chance
        if kind in _TIMES:
            return time
        if name in self.unique:
            whole = kind in ("int", "integer", "bigint", "long")
            return self.number if whole else f"{self.name}-{self.number}"
        if kind in ("string", "binary"):
            return f"{name}-{draw.randrange(POOL)}"
        if kind in ("tinyint", "smallint", "byte", "short", "int", "integer", "bigint", "long"):
            return draw.randrange(1, POOL)
        if kind in ("float", "double", "real") or kind.startswith(("decimal", "numeric", "dec")):
            # Quarters add up to the same sum in whatever order.
            return draw.randrange(4, 4 * POOL) / 4
        if kind == "boolean":
            return draw.random() < 0.5
        return time[:10] if kind == "date" else None

    def _encoded(self, values: dict[str, Any]) -> Fed:
        key = next((str(value) for name, value in values.items() if name not in self.unique), "")
        if self.entry.source.payload and self.entry.format is Format.CSV:
            line = io.StringIO()
            csv.writer(line, delimiter=self.entry.options.get("sep", ","), lineterminator="").writerow(
                values.values()
            )
            return Fed(line.getvalue().encode(), key.encode())
        if self.entry.avro_value is not None:
            return Fed(encoded(self.entry.avro_value, values), key.encode())
        return Fed(json.dumps(values).encode(), key.encode())


def drawn(entry: SourceEntry) -> Mapping[str, str]:
    """The columns that rows of a source are drawn with: its schema, or the one column of a kind that has but one."""
    if entry.columns is not None or entry.source.columns is None:
        return entry.columns or {}
    names = entry.source.columns.split()
    return {names[0]: names[1]} if len(names) == 2 else {}


def unique_columns(entry: SourceEntry, keys: frozenset[str]) -> frozenset[str]:
    """Columns whose value no two rows share: the keys of duplicates, `id`, and sinks' keys that look like one."""
    named = {name for name in drawn(entry) if re.fullmatch(r"id|uuid|event_?id", name.lower())}
    return frozenset({*entry.drop_duplicates_within_watermark, *(named & (keys | named))})
