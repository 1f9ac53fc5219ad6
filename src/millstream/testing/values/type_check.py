"""Check whether a value of a test file fits a column's type, by the type's DDL and without Spark."""

from __future__ import annotations

import base64
import binascii
import math
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from millstream.pipeline.introspection import find_nearest
from millstream.testing.values.timestamps import parse_date, parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.pipeline.load.document import Path

# The names of types are sqlglot's, which has one name for Spark's aliases.
_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
FLOATS = frozenset({"FLOAT", "DOUBLE"})
_TEXTS = frozenset({"TEXT", "VARCHAR", "CHAR"})
TIMES = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "TIMESTAMPLTZ"})
_SPECIAL_FLOATS = frozenset({"nan", "infinity", "-infinity", "inf", "-inf"})


@dataclass(frozen=True)
class ParsedType:
    """A parsed type: its name, and its nested types. The name is empty for a type that is not known."""

    name: str
    inside: tuple[ParsedType, ...] = ()
    fields: Mapping[str, ParsedType] = field(default_factory=dict)


@dataclass(frozen=True)
class ValueMismatch:
    """A value that does not fit its type: its path below the column, the expected kind of value, and a fix."""

    path: Path
    message: str
    fix: str = ""


@cache
def parse_type(ddl: str) -> ParsedType:
    """Parse a type from its DDL. An unknown type accepts any value."""
    try:
        # Only the type of a field may be followed by NOT NULL, COLLATE and COMMENT.
        (column,) = exp.DataType.build(f"struct<c:{ddl}>", dialect="spark").expressions
        return _convert_type(column.kind)
    except (SqlglotError, AttributeError, ValueError):
        return ParsedType("")


def _convert_type(parsed: Any) -> ParsedType:
    """Convert a type of sqlglot. An interval has no name."""
    name = parsed.this.value if isinstance(parsed.this, exp.DType) else ""
    if name == "STRUCT":
        fields = {column.name: _convert_type(column.kind) for column in parsed.expressions}
        return ParsedType(name, fields=fields)
    inside = parsed.expressions if name in ("ARRAY", "MAP") else ()
    return ParsedType(name, tuple(_convert_type(part) for part in inside))


def find_mismatches(of: ParsedType, value: Any, path: Path = ()) -> Iterator[ValueMismatch]:
    """Yield each mismatch of a value and its type. Null fits every type."""
    if value is None:
        return
    match of.name:
        case "ARRAY":
            if not isinstance(value, list):
                yield ValueMismatch(path, "a list")
            else:
                for number, item in enumerate(value):
                    yield from find_mismatches(of.inside[0], item, (*path, number)) if of.inside else ()
        case "MAP":
            if not isinstance(value, dict):
                yield ValueMismatch(path, "a mapping")
            else:
                for key, item in value.items():
                    yield from find_mismatches(of.inside[1], item, (*path, key)) if of.inside else ()
        case "STRUCT":
            yield from _struct_mismatches(of, value, path)
        case _:
            expected_kind = _scalar_mismatch(of, value)
            if expected_kind:
                fix = (
                    f'put it in quotes: "{value}"'
                    if expected_kind == "text" and isinstance(value, int | float)
                    else ""
                )
                yield ValueMismatch(path, expected_kind, fix)


def _struct_mismatches(of: ParsedType, value: Any, path: Path) -> Iterator[ValueMismatch]:
    if not isinstance(value, dict):
        yield ValueMismatch(path, "a mapping")
        return
    known = {name.lower(): inner for name, inner in of.fields.items()}
    for name, item in value.items():
        if str(name).lower() in known:
            yield from find_mismatches(known[str(name).lower()], item, (*path, name))
        elif known:
            nearest_name = find_nearest(str(name), of.fields)
            names = ", ".join(of.fields)
            yield ValueMismatch(
                (*path, name), "", f"write '{nearest_name}'" if nearest_name else f"name one of {names}"
            )


def _scalar_mismatch(of: ParsedType, value: Any) -> str | None:
    """Return the kind of value that a scalar type expects, or None if the value fits."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    name = of.name
    if name == "BOOLEAN":
        return None if isinstance(value, bool) else "true or false"
    if name in _INTEGERS:
        bits = _INTEGERS[name] - 1
        is_integer = is_number and not isinstance(value, float) and -(2**bits) <= value < 2**bits
        return None if is_integer else f"a whole number of {bits + 1} bits"
    if name in FLOATS:
        is_special = isinstance(value, str) and value.lower() in _SPECIAL_FLOATS
        return None if is_number or is_special else "a number"
    if name == "DECIMAL":
        return None if (is_number and math.isfinite(value)) or _is_decimal(value) else "a number"
    if name in _TEXTS:
        return None if isinstance(value, str) else "text"
    if name in TIMES:
        return None if _is_parsable(parse_timestamp, value) else "a time like 2026-01-31 12:00:00"
    if name == "DATE":
        return None if _is_parsable(parse_date, value) else "a date like 2026-01-31"
    if name == "BINARY":
        return None if isinstance(value, str) else "text, or bytes in base64"
    return None


def _is_decimal(value: Any) -> bool:
    try:
        return isinstance(value, str) and Decimal(value).is_finite()
    except InvalidOperation:
        return False


def _is_parsable(reader: Any, value: Any) -> bool:
    try:
        reader(value)
    except ValueError:
        return False
    return True


def decode_base64(text: str) -> bytes | None:
    """Decode base64 text, or return None if it is invalid."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
