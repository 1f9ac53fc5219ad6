"""Compare a Spark value with a value in a test file, by the column's type and not as text."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from millstream.testing.values.timestamps import parse_date, parse_timestamp
from millstream.testing.values.type_check import decode_base64


def is_equal(expected: Any, actual: Any, tolerance: float) -> bool:
    """Return whether two values are equal. `expected` is a YAML or Python value, `actual` a Spark value.

    An expected mapping compares only the struct fields or map keys that it names; an empty one equals only an empty
    one. Timestamps without a time zone are in UTC. Floating-point numbers may differ by `tolerance`, relative to the
    expected number, or absolute if that is 0; for a FLOAT, the expected number is first rounded to single precision.
    A bool is not a number, and null equals only null.
    """
    if expected is None or actual is None:
        return expected is None and actual is None
    if isinstance(actual, bool) or isinstance(expected, bool):
        return isinstance(actual, bool) and isinstance(expected, bool) and expected == actual
    if isinstance(actual, int | float | Decimal):
        return _equal_numbers(expected, actual, tolerance)
    if isinstance(actual, datetime):
        return bool(_parse_or_none(parse_timestamp, expected) == parse_timestamp(actual))
    if isinstance(actual, date):
        return bool(_parse_or_none(parse_date, expected) == actual)
    if isinstance(actual, bytes | bytearray | memoryview):
        return _equal_bytes(expected, bytes(actual))
    if isinstance(actual, timedelta):
        return bool(expected == actual) or (isinstance(expected, str) and expected == str(actual))
    if is_struct(actual):
        return isinstance(expected, Mapping) and is_equal_struct(expected, struct_fields(actual), tolerance)
    if isinstance(actual, Mapping):
        return isinstance(expected, Mapping) and _equal_maps(expected, actual, tolerance)
    if isinstance(actual, list | tuple):
        return (
            isinstance(expected, list | tuple)
            and len(expected) == len(actual)
            and all(
                is_equal(expected_item, actual_item, tolerance)
                for expected_item, actual_item in zip(expected, actual, strict=True)
            )
        )
    return bool(expected == actual) or (
        not isinstance(actual, str) and isinstance(expected, str) and expected == str(actual)
    )


def is_struct(value: Any) -> bool:
    """Return whether the value is a Spark `Row`: a tuple with field names."""
    return isinstance(value, tuple) and hasattr(value, "asDict")


def struct_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a struct by name. Nested values are not converted."""
    by_name: dict[str, Any] = value.asDict()
    return by_name


def is_equal_struct(expected: Mapping[str, Any], actual: Mapping[str, Any], tolerance: float) -> bool:
    """Return whether the named fields are equal. Names are compared without case, as in Spark."""
    known = {name.lower(): value for name, value in actual.items()}
    return all(
        str(name).lower() in known and is_equal(value, known[str(name).lower()], tolerance)
        for name, value in expected.items()
    )


def _equal_maps(expected: Mapping[Any, Any], actual: Mapping[Any, Any], tolerance: float) -> bool:
    """Return whether the named keys are equal. Keys in YAML are text, whatever the key type in Spark.

    A struct may also be a mapping; its field names are compared without case, as in Spark.
    """
    if not expected:
        return not actual
    unmatched = dict(actual)
    for key, value in expected.items():
        matches = (candidate for candidate in unmatched if _equal_keys(key, candidate, tolerance))
        match = key if key in unmatched else next(matches, _NONE)
        if match is _NONE or not is_equal(value, unmatched.pop(match), tolerance):
            return False
    return True


_NONE = object()


def _equal_keys(expected: Any, actual: Any, tolerance: float) -> bool:
    if isinstance(actual, bool) and isinstance(expected, str):
        return expected == str(actual).lower()
    if isinstance(actual, str) and isinstance(expected, str):
        return expected.lower() == actual.lower()
    return is_equal(expected, actual, tolerance)


def _equal_numbers(expected: Any, actual: int | float | Decimal, tolerance: float) -> bool:
    """Compare numbers by the type of the actual one: exactly, except for floating point."""
    if isinstance(actual, float):
        try:
            number = float(expected) if isinstance(expected, int | float | Decimal | str) else None
        except (ValueError, OverflowError):
            return False
        if number is None:
            return False
        if math.isnan(number) or math.isnan(actual):
            return math.isnan(number) and math.isnan(actual)
        if math.isinf(number) or math.isinf(actual):
            return number == actual
        return abs(number - actual) <= tolerance * (abs(number) or 1.0) or _to_single(number) == actual
    exact = parse_decimal(expected)
    return exact is not None and exact == actual


def _to_single(number: float) -> float:
    """Round a number to single precision, as a FLOAT column does."""
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.inf


def parse_decimal(value: Any) -> Decimal | None:
    """Convert a value to an exact decimal, or return None if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    try:
        number = Decimal(value) if isinstance(value, int | Decimal) else Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _parse_or_none(reader: Any, value: Any) -> Any:
    """Parse the expected timestamp or date, or return None if it is invalid."""
    try:
        return reader(value)
    except (ValueError, OverflowError):
        return None


def _equal_bytes(expected: Any, actual: bytes) -> bool:
    """Compare bytes with text or base64. A text that is valid as both may match either way."""
    if isinstance(expected, bytes | bytearray):
        return bytes(expected) == actual
    return isinstance(expected, str) and (
        expected.encode("utf-8", "replace") == actual or decode_base64(expected) == actual
    )
