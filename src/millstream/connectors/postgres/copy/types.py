"""Find Spark types whose values do not fit a Postgres column."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from millstream.connectors.postgres.copy.arrays import JSON_TYPES, NESTED, SUFFIX

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_NUMBERS = (*_DIGITS, "float", "double")
_WHOLE = {"smallint": 5, "integer": 10, "bigint": 19}
# Number of digits that always fit: integer ends at 2147483647.
_SAFE_DIGITS = {"smallint": 4, "integer": 9, "bigint": 18}
_TIMES = ("date", "timestamp without time zone", "timestamp with time zone")
_TIME_OF_DAY = "time without time zone"
_FLOATS = ("real", "double precision")
# Text columns accept everything. Enums and domains are not checked.
_CHECKED = frozenset(
    {*_WHOLE, *_TIMES, _TIME_OF_DAY, *_FLOATS, "numeric", "boolean", "json", "jsonb", "uuid", "bytea"}
)
_CREATED_TYPES = {
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
class TypeMismatch:
    """Why a column does not accept a type. `accepts_nothing`: no value at all; `fitting_type`: one that would fit."""

    why: str
    fitting_type: str
    accepts_nothing: bool = False


def find_mismatch(spark_type: str, column_type: str) -> TypeMismatch | None:
    """Check whether a Spark type (DDL) can be written to a Postgres column type (as format_type returns it).

    Returns None if every value fits, and for types that are not checked. Text for JSON or UUID columns is accepted,
    because Spark has no such types.
    """
    created_type = _created_type(spark_type)
    if created_type is not None and column_type.endswith(SUFFIX):
        return _check_array(spark_type, column_type, created_type)
    return None if created_type is None else _check_value(spark_type, column_type, created_type)


def _check_value(
    spark_type: str, column_type: str, created_type: str, *, as_text: bool = False
) -> TypeMismatch | None:
    """Check a value that is cast from the type of a column that the sink would create, or, in an array, from text."""
    kind = _remove_precision(column_type)
    if kind not in _CHECKED:
        return None
    if kind == "bytea":
        # Postgres 18 has casts from whole numbers.
        fits = created_type in ("bytea", "text", "jsonb") or spark_type in _DIGITS
        return None if fits else _never_fits(spark_type, kind, created_type)
    is_number = spark_type in _NUMBERS or bool(_SIZED.match(spark_type))
    if kind in ("json", "jsonb", "uuid"):
        # The text of a number is JSON, but Postgres has no cast from a number.
        is_json = created_type == "jsonb" or (is_number and as_text)
        fits = spark_type == "string" or (kind != "uuid" and is_json)
        return None if fits else _never_fits(spark_type, kind, created_type)
    if spark_type == "string":
        return TypeMismatch(f"the first text that is not a valid {kind} stops the query", created_type)
    if {spark_type, kind} in ({"int", "boolean"}, {"boolean", "integer"}) and not as_text:
        # The only cast between a number and a boolean.
        return (
            TypeMismatch("0 becomes false, and every other number becomes true", created_type)
            if kind == "boolean"
            else None
        )
    if spark_type in _DIGITS or spark_type.startswith("decimal"):
        return _check_number(spark_type, kind, column_type, created_type, as_text=as_text)
    if spark_type in ("float", "double"):
        return _check_fraction(spark_type, kind, column_type, created_type, as_text=as_text)
    if spark_type in ("date", "timestamp", "timestamp_ntz"):
        return _check_time(spark_type, kind, created_type)
    return None if spark_type == kind == "boolean" else _never_fits(spark_type, kind, created_type)


def _check_array(spark_type: str, column_type: str, created_type: str) -> TypeMismatch | None:
    if spark_type == "string":
        return TypeMismatch(f"the first text that is not a valid {column_type} stops the query", created_type)
    element, element_column = spark_type[len("array<") : -1], column_type.removesuffix(SUFFIX)
    if not spark_type.startswith("array<"):
        return _never_fits(spark_type, column_type, created_type)
    if element.startswith(tuple(NESTED)):
        fits = _remove_precision(element_column) in JSON_TYPES
        return None if fits else _never_fits(spark_type, column_type, created_type)
    created_element = _created_type(element)
    if created_element is None:
        return None
    mismatch = _check_value(element, element_column, created_element, as_text=True)
    return mismatch and replace(mismatch, fitting_type=f"{mismatch.fitting_type}{SUFFIX}")


def _check_number(
    spark_type: str, kind: str, column_type: str, created_type: str, *, as_text: bool
) -> TypeMismatch | None:
    sized = _SIZED.match(spark_type)
    scale = int(sized[2]) if sized else 0
    integer_digits = int(sized[1]) - scale if sized else _DIGITS.get(spark_type, 0)
    if kind in _WHOLE:
        if scale:
            # Postgres parses no text with a decimal point as an integer, not even 3.0.
            return _never_fits(spark_type, kind, created_type) if as_text else _rounded(kind, created_type)
        max_digits = _SAFE_DIGITS[kind] if sized else _WHOLE[kind]
        return (
            TypeMismatch(f"a number outside the range of {kind} stops the query", created_type)
            if integer_digits > max_digits
            else None
        )
    if kind == "numeric":
        limit = _SIZED.match(column_type)
        if limit is None:
            return None
        if integer_digits > int(limit[1]) - int(limit[2]):
            return _too_long(column_type, created_type)
        return (
            TypeMismatch("digits after the last decimal place are rounded off", created_type)
            if scale > int(limit[2])
            else None
        )
    return None if kind in _FLOATS else _never_fits(spark_type, kind, created_type)


def _check_fraction(
    spark_type: str, kind: str, column_type: str, created_type: str, *, as_text: bool
) -> TypeMismatch | None:
    if kind == "real" and spark_type == "double":
        return TypeMismatch(
            "a value outside the range of real stops the query, and other values lose precision", created_type
        )
    if kind == "numeric":
        return _too_long(column_type, created_type) if _SIZED.match(column_type) else None
    if kind in _WHOLE and not as_text:
        return _rounded(kind, created_type)
    return None if kind in _FLOATS else _never_fits(spark_type, kind, created_type)


def _check_time(spark_type: str, kind: str, created_type: str) -> TypeMismatch | None:
    if kind == _TIME_OF_DAY and spark_type != "date":
        return TypeMismatch("the date is lost", created_type)
    if kind not in _TIMES:
        return _never_fits(spark_type, kind, created_type)
    if kind == "date" and spark_type != "date":
        return TypeMismatch("the time of day is lost", created_type)
    if spark_type == "timestamp_ntz" and kind == "timestamp with time zone":
        return TypeMismatch("each value is read in the time zone of the Spark session", created_type)
    return None


def _rounded(kind: str, created_type: str) -> TypeMismatch:
    return TypeMismatch(
        f"digits after the decimal point are rounded off, and a number outside the range of {kind} stops the query",
        created_type,
    )


def _too_long(column_type: str, created_type: str) -> TypeMismatch:
    return TypeMismatch(f"a number with too many digits for {column_type} stops the query", created_type)


def _never_fits(spark_type: str, kind: str, created_type: str) -> TypeMismatch:
    return TypeMismatch(
        f"Postgres does not convert {spark_type} to {kind}: the first batch fails",
        created_type,
        accepts_nothing=True,
    )


def _remove_precision(column_type: str) -> str:
    """Remove the precision from a type such as `timestamp(3) with time zone`."""
    return re.sub(r"\(.*?\)", "", column_type).strip()


def _created_type(spark_type: str) -> str | None:
    """Return the column type of a created table; None for types that are not compared."""
    if sized := _SIZED.match(spark_type):
        return f"numeric({sized[1]},{sized[2]})"
    return "jsonb" if spark_type.startswith(tuple(NESTED)) else _CREATED_TYPES.get(spark_type)
