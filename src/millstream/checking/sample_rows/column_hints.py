"""Read from the plans of queries which values their columns need: literals, formats of times, messages in JSON."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

_NAME = r"`?(\w+)`?(?:#\d+L?)?"
# Spark casts the side of a comparison that has the smaller type.
_COMPARED = re.compile(
    rf"\(?(?:cast\()?(?:\w+#\d+\.)*{_NAME}(?: as [\w(),]+\))? (?:=|<=>|<|<=|>|>=) "
    r"(?:cast\()?([\w .:/+-]+?)(?: as [\w(),]+\))?\)"
)
_IN = re.compile(rf"{_NAME} IN \(([^()]*)\)")
_TIME = re.compile(rf"(?:to_timestamp|to_date|gettimestamp)\((?:\w+#\d+\.)*{_NAME}, (?:Some\()?([^,)]+)")
_CAST = re.compile(rf"cast\((?:\w+#\d+\.)*{_NAME} as (timestamp|date)\)")
_DECODED = re.compile(r"expressions\.JsonToStructs$")


@dataclass
class ColumnHints:
    """What the queries compare and decode, by the name of a column in lower case."""

    literals: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Texts that a query compares a column with."""
    times: dict[str, str] = field(default_factory=dict)
    """Formats of texts that a query reads as a time; "" for Spark's own."""
    messages: list[StructType] = field(default_factory=list)
    """Columns of the JSON that the queries decode from bytes."""

    @property
    def message(self) -> StructType | None:
        """All columns of the messages together, each with its first type."""
        fields = {column.name: column for schema in reversed(self.messages) for column in schema.fields}
        return StructType(list(fields.values())) if fields else None


def read_column_hints(frames: Iterable[DataFrame]) -> ColumnHints:
    """Return the hints in the analysed plans of some frames."""
    hints = ColumnHints()
    for frame in frames:
        plan = internals.analyzed_plan(frame)
        text = str(plan.toString())
        for name, literal in _COMPARED.findall(text):
            hints.literals[name.lower()].append(literal)
        for name, listed in _IN.findall(text):
            hints.literals[name.lower()] += listed.split(",")
        for name, _ in _CAST.findall(text):
            hints.times.setdefault(name.lower(), "")
        for name, pattern in _TIME.findall(text):
            hints.times[name.lower()] = "" if pattern in ("None", "TimestampType", "DateType") else pattern
        hints.messages += _message_schemas(json.loads(str(plan.toJSON())))
    return hints


def _message_schemas(part: Any) -> Iterator[StructType]:
    """Yield the schemas of all `from_json` in the JSON of a plan."""
    if isinstance(part, list):
        for item in part:
            yield from _message_schemas(item)
    elif isinstance(part, dict):
        schema = part.get("schema")
        if _DECODED.search(str(part.get("class", ""))) and schema is not None:
            value = json.loads(schema) if isinstance(schema, str) else schema
            if isinstance(value, dict) and value.get("type") == "struct":
                yield StructType.fromJson(value)
        for item in part.values():
            if isinstance(item, dict | list):
                yield from _message_schemas(item)
