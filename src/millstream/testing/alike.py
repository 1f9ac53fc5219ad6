"""Is a value that came the one that a test file means? Compared as the column's type, not as text."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from millstream.testing.moments import day, moment
from millstream.testing.types import unpacked


def alike(wanted: Any, got: Any, tolerance: float) -> bool:
    """Are they the same? `wanted` is as YAML or Python has it, `got` as Spark gives it.

    A mapping that is wanted compares the fields of a struct, or keys of a map, that it names; an empty one is equal
    to an empty one. Times without a zone are in UTC. Floating-point numbers may be off by `tolerance`, relative to
    the wanted one, or as such where that is 0; a FLOAT is compared as it holds the wanted number. A bool is no
    number, and null is equal to null alone.
    """
    if wanted is None or got is None:
        return wanted is None and got is None
    if isinstance(got, bool) or isinstance(wanted, bool):
        return isinstance(got, bool) and isinstance(wanted, bool) and wanted == got
    if isinstance(got, int | float | Decimal):
        return _numbers(wanted, got, tolerance)
    if isinstance(got, datetime):
        return bool(_reads(moment, wanted) == moment(got))
    if isinstance(got, date):
        return bool(_reads(day, wanted) == got)
    if isinstance(got, bytes | bytearray | memoryview):
        return _bytes(wanted, bytes(got))
    if isinstance(got, timedelta):
        return bool(wanted == got) or (isinstance(wanted, str) and wanted == str(got))
    if is_struct(got):
        return isinstance(wanted, Mapping) and struct_alike(wanted, fields(got), tolerance)
    if isinstance(got, Mapping):
        return isinstance(wanted, Mapping) and _maps(wanted, got, tolerance)
    if isinstance(got, list | tuple):
        return (
            isinstance(wanted, list | tuple)
            and len(wanted) == len(got)
            and all(alike(one, other, tolerance) for one, other in zip(wanted, got, strict=True))
        )
    return bool(wanted == got) or (
        not isinstance(got, str) and isinstance(wanted, str) and wanted == str(got)
    )


def is_struct(value: Any) -> bool:
    """Is the value a row of Spark: a tuple that knows the names of its fields?"""
    return isinstance(value, tuple) and hasattr(value, "asDict")


def fields(value: Any) -> dict[str, Any]:
    """The fields of a struct by name; values inside stay as they are."""
    found: dict[str, Any] = value.asDict()
    return found


def struct_alike(wanted: Mapping[str, Any], got: Mapping[str, Any], tolerance: float) -> bool:
    """Are the named fields the same? Spark compares names without case."""
    known = {name.lower(): value for name, value in got.items()}
    return all(
        str(name).lower() in known and alike(value, known[str(name).lower()], tolerance)
        for name, value in wanted.items()
    )


def _maps(wanted: Mapping[Any, Any], got: Mapping[Any, Any], tolerance: float) -> bool:
    """Are the named keys the same? The keys of YAML are text, whatever Spark's are.

    A struct comes as a mapping too, and Spark takes its fields' names without case.
    """
    if not wanted:
        return not got
    left = dict(got)
    for key, value in wanted.items():
        same = (one for one in left if _key(key, one, tolerance))
        found = key if key in left else next(same, _NONE)
        if found is _NONE or not alike(value, left.pop(found), tolerance):
            return False
    return True


_NONE = object()


def _key(wanted: Any, got: Any, tolerance: float) -> bool:
    if isinstance(got, bool) and isinstance(wanted, str):
        return wanted == str(got).lower()
    if isinstance(got, str) and isinstance(wanted, str):
        return wanted.lower() == got.lower()
    return alike(wanted, got, tolerance)


def _numbers(wanted: Any, got: int | float | Decimal, tolerance: float) -> bool:
    """Numbers as the type of the one that came: exact but for floating point."""
    if isinstance(got, float):
        try:
            number = float(wanted) if isinstance(wanted, int | float | Decimal | str) else None
        except (ValueError, OverflowError):
            return False
        if number is None:
            return False
        if math.isnan(number) or math.isnan(got):
            return math.isnan(number) and math.isnan(got)
        if math.isinf(number) or math.isinf(got):
            return number == got
        return abs(number - got) <= tolerance * (abs(number) or 1.0) or _single(number) == got
    exact = decimal(wanted)
    return exact is not None and exact == got


def _single(number: float) -> float:
    """The number as a column of Spark's type FLOAT would hold it."""
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.inf


def decimal(value: Any) -> Decimal | None:
    """A number as it is written, or None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    try:
        found = Decimal(value) if isinstance(value, int | Decimal) else Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def _reads(reader: Any, wanted: Any) -> Any:
    """The time or date that is wanted, or None when it is none."""
    try:
        return reader(wanted)
    except (ValueError, OverflowError):
        return None


def _bytes(wanted: Any, got: bytes) -> bool:
    """Bytes against text or base64; what is both is either."""
    if isinstance(wanted, bytes | bytearray):
        return bytes(wanted) == got
    return isinstance(wanted, str) and (wanted.encode("utf-8", "replace") == got or unpacked(wanted) == got)
