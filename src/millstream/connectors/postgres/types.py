"""Which of Spark's types a column of Postgres takes, as text through COPY, and what becomes of the others."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_NUMBERS = (*_DIGITS, "float", "double")
_WHOLE = {"smallint": 5, "integer": 10, "bigint": 19}
# Digits of which every number fits: integer ends at 2147483647.
_SURE = {"smallint": 4, "integer": 9, "bigint": 18}
_TIMES = ("date", "timestamp without time zone", "timestamp with time zone")
_FLOATS = ("real", "double precision")
# Texts take everything, and bytea takes the bytes of what COPY sends. Enums, domains and arrays are not judged.
_JUDGED = frozenset({*_WHOLE, *_TIMES, *_FLOATS, "numeric", "boolean", "json", "jsonb", "uuid"})
_MADE = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "binary": "bytea",
    "string": "text",
}
_SIZED = re.compile(r"(?:decimal|numeric)\((\d+),(\d+)\)")


@dataclass(frozen=True)
class Misfit:
    """Why a column does not take a type; `always` when it takes no value of it, `wanted` is a type that would do."""

    why: str
    wanted: str
    always: bool = False


def misfit(given: str, held: str) -> Misfit | None:
    """What is wrong with writing Spark's type `given` (DDL) into Postgres' `held` (as format_type has it).

    None when every value fits, and for types that are not judged. A text into JSON or a UUID is let through: Spark
    has no type for them.
    """
    made = _made(given)
    kind = _plain(held)
    if made is None or kind not in _JUDGED:
        return None
    if kind in ("json", "jsonb", "uuid"):
        number = given in _NUMBERS or bool(_SIZED.match(given))
        fits = given == "string" or (kind != "uuid" and (made == "jsonb" or number))
        return None if fits else _never(given, kind, made)
    if given == "string":
        return Misfit(f"the first text that is no {kind} ends the query", made)
    if given in _DIGITS or given.startswith("decimal"):
        return _number(given, kind, held, made)
    if given in ("float", "double"):
        return _fraction(given, kind, held, made)
    if given in ("date", "timestamp", "timestamp_ntz"):
        return _time(given, kind, made)
    return None if given == kind == "boolean" else _never(given, kind, made)


def _number(given: str, kind: str, held: str, made: str) -> Misfit | None:
    sized = _SIZED.match(given)
    scale = int(sized[2]) if sized else 0
    whole = int(sized[1]) - scale if sized else _DIGITS.get(given, 0)
    if kind in _WHOLE:
        if scale:
            return _never(given, kind, made)
        room = _SURE[kind] if sized else _WHOLE[kind]
        return Misfit(f"a number beyond the range of {kind} ends the query", made) if whole > room else None
    if kind == "numeric":
        limit = _SIZED.match(held)
        if limit is None:
            return None
        if whole > int(limit[1]) - int(limit[2]):
            return _too_long(held, made)
        return Misfit("what is behind the last digit is rounded off", made) if scale > int(limit[2]) else None
    return None if kind in _FLOATS else _never(given, kind, made)


def _fraction(given: str, kind: str, held: str, made: str) -> Misfit | None:
    if kind == "real" and given == "double":
        return Misfit("a value beyond the range of real ends the query, and others lose digits", made)
    if kind == "numeric":
        return _too_long(held, made) if _SIZED.match(held) else None
    # Not even 3.0 is read as an integer.
    return None if kind in _FLOATS else _never(given, kind, made)


def _time(given: str, kind: str, made: str) -> Misfit | None:
    if kind not in _TIMES:
        return _never(given, kind, made)
    if kind == "date" and given != "date":
        return Misfit("the time of day is cut off", made)
    if given == "timestamp_ntz" and kind == "timestamp with time zone":
        return Misfit("each value is taken for one of the server's own time zone", made)
    return None


def _too_long(held: str, made: str) -> Misfit:
    return Misfit(f"a number that {held} has no digits for ends the query", made)


def _never(given: str, kind: str, made: str) -> Misfit:
    return Misfit(f"Postgres reads no {given} as {kind}: the first batch fails", made, always=True)


def _plain(held: str) -> str:
    """`timestamp(3) with time zone` without its precision."""
    return re.sub(r"\(.*?\)", "", held).strip()


def _made(given: str) -> str | None:
    """The type of a table that is made from the query; None for types that are not compared."""
    if sized := _SIZED.match(given):
        return f"numeric({sized[1]},{sized[2]})"
    return "jsonb" if given.startswith(("array", "map", "struct", "variant")) else _MADE.get(given)
