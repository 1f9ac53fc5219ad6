"""Infer Spark SQL types from JSON values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Forms that Spark's JSON and CSV readers parse without options.
TIMESTAMP = re.compile(
    r"[12]\d{3}-[01]\d-[0-3]\d[T ][0-2]\d:[0-5]\d(:[0-6]\d([.]\d{1,9})?)?(Z|[+-][01]\d:[0-5]\d)?"
)
DATE = re.compile(r"[12]\d{3}-[01]\d-[0-3]\d")
# An object whose keys are data, such as user ids, has many keys and few of them in most records.
_MANY_KEYS = 30
_LARGEST_LONG = 2**63


@dataclass
class Observed:
    """The values that were seen in one place: how many, and of which types."""

    count: int = 0
    nulls: int = 0
    kinds: set[str] = field(default_factory=set)
    objects: int = 0
    fields: dict[str, Observed] = field(default_factory=dict)
    element: Observed | None = None

    def add(self, value: Any) -> None:
        """Count one value."""
        self.count += 1
        match value:
            case None:
                self.nulls += 1
            case bool():
                self.kinds.add("boolean")
            case int():
                self.kinds.add("bigint" if -_LARGEST_LONG <= value < _LARGEST_LONG else "decimal(38,0)")
            case float():
                self.kinds.add("double")
            case str():
                self.kinds.add(_kind_of_text(value))
            case dict():
                self.kinds.add("struct")
                self.objects += 1
                for name, inner in value.items():
                    self.fields.setdefault(name, Observed()).add(inner)
            case list():
                self.kinds.add("array")
                self.element = self.element or Observed()
                for inner in value:
                    self.element.add(inner)
            case _:
                self.kinds.add("string")

    @property
    def type(self) -> str:
        """The narrowest Spark SQL type that holds all values; `string` holds any, as JSON text."""
        kinds = self.kinds
        if kinds == {"struct"}:
            return self._struct_type()
        if kinds == {"array"}:
            return f"array<{self.element.type if self.element else 'string'}>"
        if kinds and kinds <= {"bigint", "double", "decimal(38,0)"}:
            return "double" if "double" in kinds else max(kinds, key=len)
        if kinds and kinds <= {"date", "timestamp"} and len(kinds) == 2:
            return "timestamp"
        return next(iter(kinds)) if len(kinds) == 1 else "string"

    @property
    def is_mixed(self) -> bool:
        """Whether values of types were seen that only a text can hold."""
        return self.type == "string" and bool(self.kinds - {"string", "date", "timestamp"})

    def _struct_type(self) -> str:
        common = [inner for inner in self.fields.values() if inner.count * 2 >= self.objects]
        if len(self.fields) > _MANY_KEYS and not common:
            merged = Observed(kinds=set().union(*(inner.kinds for inner in self.fields.values())))
            return f"map<string, {'string' if merged.kinds & {'struct', 'array'} else merged.type}>"
        if not self.fields:
            return "map<string, string>"
        inner = (f"{quote_column(name)}: {item.type}" for name, item in unique_columns(self.fields).items())
        return f"struct<{', '.join(inner)}>"


def observe(records: Iterable[Mapping[str, Any]]) -> Observed:
    """Return what was seen in all records, whose fields are the columns."""
    observed = Observed()
    for record in records:
        observed.add(dict(record))
    return observed


def unique_columns(fields: Mapping[str, Observed]) -> dict[str, Observed]:
    """Leave out names that differ from an earlier one in case only, because Spark takes them for the same."""
    names: dict[str, str] = {}
    for name in fields:
        names.setdefault(name.lower(), name)
    return {name: fields[name] for name in names.values()}


def quote_column(name: str) -> str:
    """Return a name as SQL, quoted if it is no plain word."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"


def _kind_of_text(text: str) -> str:
    if DATE.fullmatch(text):
        return "date"
    return "timestamp" if TIMESTAMP.fullmatch(text) else "string"
