"""Can a value of a test file be of a column's type? Told from the type's DDL, without Spark."""

from __future__ import annotations

import base64
import binascii
import math
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from millstream.pipeline.describe import nearest
from millstream.testing.moments import day, moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.pipeline.document import Path

# Spark's names of a type, and others it takes for it (DataTypeAstBuilder, 4.2).
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
_ODD_FLOATS = frozenset({"nan", "infinity", "-infinity", "inf", "-inf"})
_TAIL = re.compile(r"\s+(?:not\s+null|comment\s+'(?:[^'\\]|\\.)*'|collate\s+\w+)", re.IGNORECASE)


@dataclass(frozen=True)
class Kind:
    """A type taken apart: its name, what stands in its brackets, and the types inside it."""

    name: str
    told: str = ""
    inside: tuple[Kind, ...] = ()
    fields: Mapping[str, Kind] = field(default_factory=dict)


@dataclass(frozen=True)
class Misfit:
    """A value that cannot be of its type: the place below the column, what it is not, and a cure."""

    path: Path
    message: str
    fix: str = ""


def kind(ddl: str) -> Kind:
    """A type from its DDL; what is not understood is a type of that name, which takes anything."""
    text = _TAIL.sub("", ddl.strip())
    name, _, rest = text.partition("<")
    if rest.endswith(">"):
        parts = [part.strip() for part in _parts(rest[:-1])]
        word = name.strip().lower()
        if word == "struct":
            return Kind(word, fields={key: kind(inner) for key, inner in map(_field, parts)})
        if (word, len(parts)) in (("array", 1), ("map", 2)):
            return Kind(word, inside=tuple(kind(part) for part in parts))
    word, _, told = text.partition("(")
    return Kind(word.strip().lower(), told.rstrip(" )"))


def _parts(text: str) -> Iterator[str]:
    """A text cut at the commas that stand in no bracket."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _field(text: str) -> tuple[str, str]:
    """The name and type of one field of a struct: `a: int` or `a int`."""
    found = re.match(r"(?:`((?:[^`]|``)*)`|([^\s:`]+))\s*:?\s*(.*)\Z", text, re.DOTALL)
    return (text, "") if found is None else ((found[1] or found[2] or "").replace("``", "`"), found[3])


def misfits(of: Kind, value: Any, path: Path = ()) -> Iterator[Misfit]:
    """What of a value cannot be of the type; null can be of any."""
    if value is None:
        return
    match of.name:
        case "array":
            if not isinstance(value, list):
                yield Misfit(path, "a list")
            else:
                for number, item in enumerate(value):
                    yield from misfits(of.inside[0], item, (*path, number)) if of.inside else ()
        case "map":
            if not isinstance(value, dict):
                yield Misfit(path, "keys with values")
            else:
                for key, item in value.items():
                    yield from misfits(of.inside[1], item, (*path, key)) if of.inside else ()
        case "struct":
            yield from _struct(of, value, path)
        case _:
            said = _single(of, value)
            if said:
                fix = (
                    f'put it in quotes: "{value}"'
                    if said == "text" and isinstance(value, int | float)
                    else ""
                )
                yield Misfit(path, said, fix)


def _struct(of: Kind, value: Any, path: Path) -> Iterator[Misfit]:
    if not isinstance(value, dict):
        yield Misfit(path, "keys with values")
        return
    known = {name.lower(): inner for name, inner in of.fields.items()}
    for name, item in value.items():
        if str(name).lower() in known:
            yield from misfits(known[str(name).lower()], item, (*path, name))
        elif known:
            near = nearest(str(name), of.fields)
            names = ", ".join(of.fields)
            yield Misfit((*path, name), "", f"write '{near}'" if near else f"name one of {names}")


def _single(of: Kind, value: Any) -> str | None:
    """What a value that holds no others should be and is not."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    name = of.name
    if name == "boolean":
        return None if isinstance(value, bool) else "true or false"
    if name in _INTEGERS:
        bits = _INTEGERS[name] - 1
        whole = number and not isinstance(value, float) and -(2**bits) <= value < 2**bits
        return None if whole else f"a whole number of {bits + 1} bits"
    if name in _FLOATS:
        odd = isinstance(value, str) and value.lower() in _ODD_FLOATS
        return None if number or odd else "a number"
    if name in _DECIMALS:
        return None if (number and math.isfinite(value)) or _is_decimal(value) else "a number"
    if name in _TEXTS:
        return None if isinstance(value, str) else "text"
    if name in _TIMES:
        return None if _reads(moment, value) else "a time like 2026-01-31 12:00:00"
    if name == "date":
        return None if _reads(day, value) else "a date like 2026-01-31"
    if name == "binary":
        return None if isinstance(value, str) else "text, or bytes in base64"
    return None


def _is_decimal(value: Any) -> bool:
    try:
        return isinstance(value, str) and Decimal(value).is_finite()
    except InvalidOperation:
        return False


def _reads(reader: Any, value: Any) -> bool:
    try:
        reader(value)
    except ValueError:
        return False
    return True


def unpacked(text: str) -> bytes | None:
    """The bytes that a text means in base64, or None when it is none."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
