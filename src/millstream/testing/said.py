"""Values that Spark gave, and messages that were fed, as a test file writes them."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from millstream.testing.alike import fields, is_struct
from millstream.testing.case import Record
from millstream.testing.moments import written
from millstream.testing.rows import RECORD

if TYPE_CHECKING:
    from millstream.testing.case import Fed, Row


def row(given: Row) -> dict[str, Any]:
    """A row with values that YAML and JSON have."""
    return {name: value(one) for name, one in given.items()}


def value(given: Any) -> Any:
    """A value as a test file has it: times and decimals as text, bytes in base64."""
    if isinstance(given, datetime):
        return written(given)
    if isinstance(given, date | Decimal | timedelta):
        return str(given)
    if isinstance(given, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(given)).decode()
    if isinstance(given, float) and not math.isfinite(given):
        return "NaN" if math.isnan(given) else "Infinity" if given > 0 else "-Infinity"
    if is_struct(given):
        return {name: value(one) for name, one in fields(given).items()}
    if isinstance(given, Mapping):
        return {str(value(name)): value(one) for name, one in given.items()}
    if isinstance(given, list | tuple):
        return [value(one) for one in given]
    return given


def fed(given: Fed) -> dict[str, Any]:
    """One item of a feed."""
    return {RECORD: _record(given)} if isinstance(given, Record) else row(given)


def _record(given: Record) -> dict[str, Any]:
    found = _bytes("value", given.value)
    if given.key is not None:
        found |= _bytes("key", given.key)
    if given.topic is not None:
        found["topic"] = given.topic
    if given.partition:
        found["partition"] = given.partition
    if given.offset is not None:
        found["offset"] = given.offset
    if given.timestamp is not None:
        found["timestamp"] = written(given.timestamp)
    if given.headers:
        found["headers"] = [
            {name: None if held is None else held.decode("utf-8", "replace")} for name, held in given.headers
        ]
    return found


def _bytes(name: str, held: bytes | None) -> dict[str, Any]:
    if held is None:
        return {name: None}
    try:
        return {name: held.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(held).decode()}
