"""Format row values for reports and for test files."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from millstream.diagnostics.snippet import escape_control
from millstream.testing.values.equality import is_struct, struct_fields
from millstream.testing.values.timestamps import format_timestamp, parse_date, parse_timestamp


def to_plain(value: Any) -> Any:
    """Convert a Spark value for YAML and JSON: timestamps and dates as text in UTC, bytes as text or base64."""
    if isinstance(value, datetime):
        return format_timestamp(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return _decimal_value(value)
    if isinstance(value, bytes | bytearray | memoryview):
        text = decode_printable(bytes(value))
        return base64.b64encode(value).decode() if text is None else text
    if is_struct(value):
        return {name: to_plain(item) for name, item in struct_fields(value).items()}
    if isinstance(value, Mapping):
        return {str(to_plain(key)): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _decimal_value(value: Decimal) -> Any:
    """Convert a decimal to a number that parses back to the same decimal, or to text if there is none."""
    if value == value.to_integral_value() and value.as_tuple().exponent == 0:
        return int(value)
    short = float(value)
    return short if Decimal(repr(short)) == value else format(value, "f")


def decode_printable(value: bytes) -> str | None:
    """Decode bytes as printable text; None if they are not."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def format_cell(value: Any) -> str:
    """Format a value on one line: NULL for None, and nested values as JSON."""
    short = to_plain(value)
    if short is None:
        return "NULL"
    if isinstance(short, bool):
        return "true" if short else "false"
    if isinstance(short, dict | list):
        return escape_control(json.dumps(short, ensure_ascii=False, default=str))
    return escape_control(str(short))


def format_cells(expected: Any, actual: Any) -> tuple[str, str]:
    """Format two different values as two different texts, the expected one in the notation of the actual one."""
    comparable = expected
    if isinstance(expected, str) and isinstance(actual, date):
        comparable = _parse_like(expected, actual)
    expected_text, actual_text = format_cell(comparable), format_cell(actual)
    if expected_text == actual_text:
        # For example a number and its text: their notation or type shows the difference.
        return (
            json.dumps(to_plain(expected), default=str),
            f"{json.dumps(to_plain(actual), default=str)} ({_type_name(actual)})",
        )
    return expected_text, actual_text


def _parse_like(expected: str, actual: date) -> Any:
    try:
        return parse_timestamp(expected) if isinstance(actual, datetime) else parse_date(expected)
    except (ValueError, OverflowError):
        return expected


def _type_name(value: Any) -> str:
    return type(value).__name__
