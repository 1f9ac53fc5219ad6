"""Check whether a value of a test file fits a column's type, by the type's DDL and without Spark."""

from __future__ import annotations

import base64
import binascii
import math
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from millstream.pipeline.introspection import find_nearest
from millstream.testing.values.timestamps import parse_date, parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.pipeline.load.document import Path

# Spark's type names and their aliases (DataTypeAstBuilder, 4.2).
_INTEGERS = {
    "tinyint": 8,
    "byte": 8,
    "smallint": 16,
    "short": 16,
    "int": 32,
    "integer": 32,
    "bigint": 64,
    "long": 64,
}
_FLOATS = frozenset({"float", "real", "double"})
_DECIMALS = frozenset({"decimal", "dec", "numeric"})
_TEXTS = frozenset({"string", "varchar", "char", "character"})
_TIMES = frozenset({"timestamp", "timestamp_ntz", "timestamp_ltz"})
_SPECIAL_FLOATS = frozenset({"nan", "infinity", "-infinity", "inf", "-inf"})
_SUFFIX = re.compile(r"\s+(?:not\s+null|comment\s+'(?:[^'\\]|\\.)*'|collate\s+\w+)", re.IGNORECASE)


@dataclass(frozen=True)
class ParsedType:
    """A parsed type: its name, its parameters in parentheses, and its nested types."""

    name: str
    parameters: str = ""
    inside: tuple[ParsedType, ...] = ()
    fields: Mapping[str, ParsedType] = field(default_factory=dict)


@dataclass(frozen=True)
class ValueMismatch:
    """A value that does not fit its type: its path below the column, the expected kind of value, and a fix."""

    path: Path
    message: str
    fix: str = ""


def parse_type(ddl: str) -> ParsedType:
    """Parse a type from its DDL. An unknown type accepts any value."""
    text = _SUFFIX.sub("", ddl.strip())
    name, _, rest = text.partition("<")
    if rest.endswith(">"):
        parts = [part.strip() for part in _split_at_commas(rest[:-1])]
        type_name = name.strip().lower()
        if type_name == "struct":
            return ParsedType(
                type_name, fields={key: parse_type(inner) for key, inner in map(_split_field, parts)}
            )
        if (type_name, len(parts)) in (("array", 1), ("map", 2)):
            return ParsedType(type_name, inside=tuple(parse_type(part) for part in parts))
    type_name, _, parameters = text.partition("(")
    return ParsedType(type_name.strip().lower(), parameters.rstrip(" )"))


def _split_at_commas(text: str) -> Iterator[str]:
    """Split a text at commas outside of brackets."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _split_field(text: str) -> tuple[str, str]:
    """Return the name and type of one struct field: `a: int` or `a int`."""
    match = re.match(r"(?:`((?:[^`]|``)*)`|([^\s:`]+))\s*:?\s*(.*)\Z", text, re.DOTALL)
    return (text, "") if match is None else ((match[1] or match[2] or "").replace("``", "`"), match[3])


def find_mismatches(of: ParsedType, value: Any, path: Path = ()) -> Iterator[ValueMismatch]:
    """Yield each mismatch of a value and its type. Null fits every type."""
    if value is None:
        return
    match of.name:
        case "array":
            if not isinstance(value, list):
                yield ValueMismatch(path, "a list")
            else:
                for number, item in enumerate(value):
                    yield from find_mismatches(of.inside[0], item, (*path, number)) if of.inside else ()
        case "map":
            if not isinstance(value, dict):
                yield ValueMismatch(path, "a mapping")
            else:
                for key, item in value.items():
                    yield from find_mismatches(of.inside[1], item, (*path, key)) if of.inside else ()
        case "struct":
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
    if name == "boolean":
        return None if isinstance(value, bool) else "true or false"
    if name in _INTEGERS:
        bits = _INTEGERS[name] - 1
        is_integer = is_number and not isinstance(value, float) and -(2**bits) <= value < 2**bits
        return None if is_integer else f"a whole number of {bits + 1} bits"
    if name in _FLOATS:
        is_special = isinstance(value, str) and value.lower() in _SPECIAL_FLOATS
        return None if is_number or is_special else "a number"
    if name in _DECIMALS:
        return None if (is_number and math.isfinite(value)) or _is_decimal(value) else "a number"
    if name in _TEXTS:
        return None if isinstance(value, str) else "text"
    if name in _TIMES:
        return None if _is_parsable(parse_timestamp, value) else "a time like 2026-01-31 12:00:00"
    if name == "date":
        return None if _is_parsable(parse_date, value) else "a date like 2026-01-31"
    if name == "binary":
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
