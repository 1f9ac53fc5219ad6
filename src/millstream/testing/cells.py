"""Values of rows as a person reads them in a report, and as a test file writes them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from millstream.diagnostics.snippet import printable
from millstream.testing.alike import fields, is_struct
from millstream.testing.moments import day, moment, written


def plain(value: Any) -> Any:
    """A value that came, as YAML and JSON have it: times and dates as text in UTC, bytes as text or base64."""
    if isinstance(value, datetime):
        return written(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _text(bytes(value))
    if is_struct(value):
        return {name: plain(item) for name, item in fields(value).items()}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _number(value: Decimal) -> Any:
    """A decimal as the number that is read back as the same one; as text where there is none."""
    if value == value.to_integral_value() and value.as_tuple().exponent == 0:
        return int(value)
    short = float(value)
    return short if Decimal(repr(short)) == value else format(value, "f")


def _text(value: bytes) -> str:
    """Bytes as the text they are, else in base64."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()
    return text if text.isprintable() else base64.b64encode(value).decode()


def cell(value: Any) -> str:
    """A value on one line: NULL for nothing, what holds others as JSON."""
    short = plain(value)
    if short is None:
        return "NULL"
    if isinstance(short, bool):
        return "true" if short else "false"
    if isinstance(short, dict | list):
        return printable(json.dumps(short, ensure_ascii=False, default=str))
    return printable(str(short))


def cells(wanted: Any, got: Any) -> tuple[str, str]:
    """Two values that differ, as two texts that differ; what is wanted in the form of what came."""
    meant = wanted
    if isinstance(wanted, str) and isinstance(got, date):
        meant = _as_time(wanted, got)
    one, other = cell(meant), cell(got)
    if one == other:
        # A number and its text, say: what they are tells them apart.
        return (
            json.dumps(plain(wanted), default=str),
            f"{json.dumps(plain(got), default=str)} ({_kind(got)})",
        )
    return one, other


def _as_time(wanted: str, got: date) -> Any:
    try:
        return moment(wanted) if isinstance(got, datetime) else day(wanted)
    except (ValueError, OverflowError):
        return wanted


def _kind(value: Any) -> str:
    return type(value).__name__
