"""What becomes of a value whose type differs from that of the table's column. Types are Spark DDL."""

from __future__ import annotations

import re

NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"})
_FRACTIONS = frozenset({"float", "double"})
_INSTANTS = frozenset({"timestamp", "timestamp_ntz"})
# MERGE casts between the types of each set; an append accepts a column's own type only. Tested on Delta 4.4.
_CAST = (
    NUMBERS | {"boolean"},
    NUMBERS | {"timestamp"},
    frozenset({"date", "timestamp", "timestamp_ntz"}),
    frozenset({"string", "binary"}),
)
TYPE_WIDENING = "delta.enableTypeWidening"
"""Table property with which a merge that evolves the schema may widen a column's type instead."""
# The types of a column and a value for which Delta widens the column, next to decimals with more digits.
_WIDENED = frozenset(
    {
        ("tinyint", "double"),
        ("smallint", "double"),
        ("int", "double"),
        ("float", "double"),
        ("date", "timestamp_ntz"),
    }
)
# The digits before the point of the least decimal to which Delta widens a whole number.
_WHOLE_DIGITS = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}
# The digits of the longest whole number of a type, and those that a floating-point number always has exactly.
_MOST_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_EXACT_DIGITS = {"float": 6, "double": 15}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def accepts(column_type: str, value_type: str, *, merges: bool) -> bool:
    """Return whether Delta writes values of this type to a column. Delta itself checks nested types."""
    column_name, value_name = _outer(column_type), _outer(value_type)
    if value_name in ("void", "char", "varchar"):
        return True
    if not merges:
        return column_type == value_type or (column_name == value_name and column_name != "decimal")
    return column_name in (value_name, "string") or any(
        {column_name, value_name} <= family for family in _CAST
    )


def describe_loss(column_type: str, value_type: str) -> str:
    """Return what MERGE loses of a value that it casts without an error; empty if nothing.

    A number that is too great for the column is no loss, because it stops the query.
    """
    column_name, value_name = _outer(column_type), _outer(value_type)
    has_fraction = value_name in _FRACTIONS or _scale(value_type) > 0
    if column_name == "boolean" and value_name in NUMBERS:
        return "every number but 0 becomes true"
    if column_name == "date" and value_name in _INSTANTS:
        return "the time of day is lost"
    if column_name in NUMBERS and value_name == "timestamp":
        return "fractions of a second are lost"
    if column_name == "float" and value_name == "double":
        return "digits are lost"
    if column_name == "decimal" and (value_name in _FRACTIONS or _scale(value_type) > _scale(column_type)):
        return f"decimal places after {_scale(column_type)} are lost"
    if column_name in NUMBERS - _FRACTIONS - {"decimal"} and has_fraction:
        return "decimal places are lost"
    return ""


def describe_key_loss(column_type: str, value_type: str) -> str:
    """Return why MERGE may take two keys for the same number after its cast; empty if it does not."""
    exact = _EXACT_DIGITS.get(column_type)
    digits = _MOST_DIGITS.get(value_type) or sum(_count_digits(value_type) or ())
    return "" if exact is None or digits <= exact else f"keys of more than {exact} digits may become equal"


def is_widened(column_type: str, value_type: str) -> bool:
    """Return whether Delta gives the column a type that has room for the values, if it may (`TYPE_WIDENING`)."""
    digits = _count_digits(value_type)
    if digits is None:
        return (column_type, value_type) in _WIDENED
    before, after = _count_digits(column_type) or (_WHOLE_DIGITS.get(column_type, 39), 0)
    return digits[0] >= before and digits[1] >= after


def _outer(kind: str) -> str:
    return kind.partition("<")[0].partition("(")[0]


def _scale(kind: str) -> int:
    return (_count_digits(kind) or (0, 0))[1]


def _count_digits(kind: str) -> tuple[int, int] | None:
    """Return the digits before and after the point of a decimal, or None for another type."""
    match = _DECIMAL.fullmatch(kind)
    return (int(match[1]) - int(match[2]), int(match[2])) if match else None
