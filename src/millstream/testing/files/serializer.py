"""Serialize Spark values and fed messages in the notation of a test file."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from millstream.testing.files.row_parser import RECORD
from millstream.testing.model import Record
from millstream.testing.values.equality import is_struct, struct_fields
from millstream.testing.values.timestamps import format_timestamp

if TYPE_CHECKING:
    from millstream.testing.model import Fed, Row


def serialize_row(values: Row) -> dict[str, Any]:
    """Convert a row to values that YAML and JSON can express."""
    return {name: serialize_value(item) for name, item in values.items()}


def serialize_value(item: Any) -> Any:
    """Convert a value to test-file notation: times and decimals as text, bytes in base64."""
    if isinstance(item, datetime):
        return format_timestamp(item)
    if isinstance(item, date | Decimal | timedelta):
        return str(item)
    if isinstance(item, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(item)).decode()
    if isinstance(item, float) and not math.isfinite(item):
        return "NaN" if math.isnan(item) else "Infinity" if item > 0 else "-Infinity"
    if is_struct(item):
        return {name: serialize_value(inner) for name, inner in struct_fields(item).items()}
    if isinstance(item, Mapping):
        return {str(serialize_value(name)): serialize_value(inner) for name, inner in item.items()}
    if isinstance(item, list | tuple):
        return [serialize_value(inner) for inner in item]
    return item


def serialize_feed_item(item: Fed) -> dict[str, Any]:
    """Convert one item of a feed."""
    return {RECORD: _message_fields(item)} if isinstance(item, Record) else serialize_row(item)


def _message_fields(message: Record) -> dict[str, Any]:
    fields_by_name = _bytes_field("value", message.value)
    if message.key is not None:
        fields_by_name |= _bytes_field("key", message.key)
    if message.topic is not None:
        fields_by_name["topic"] = message.topic
    if message.partition:
        fields_by_name["partition"] = message.partition
    if message.offset is not None:
        fields_by_name["offset"] = message.offset
    if message.timestamp is not None:
        fields_by_name["timestamp"] = format_timestamp(message.timestamp)
    if message.headers:
        fields_by_name["headers"] = [
            {name: None if content is None else content.decode("utf-8", "replace")}
            for name, content in message.headers
        ]
    return fields_by_name


def _bytes_field(name: str, content: bytes | None) -> dict[str, Any]:
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}
