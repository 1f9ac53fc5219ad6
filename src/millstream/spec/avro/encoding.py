"""Encode plain Python values in Avro's binary form, as a producer would send a row."""

from __future__ import annotations

import base64
import json
import struct
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.spec.avro.schema import Avro, Schema

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROS = {"millis": 1000, "micros": 1}
# Spark's decimals have up to 38 digits, Python's default context 28.
_EXACT = Context(prec=38, traps=[Inexact, InvalidOperation])


def encode_row(avro: Avro, row: Mapping[str, Any]) -> bytes:
    """Encode a row, preceded by its header. A missing field takes the default of the schema, or null.

    Times are datetimes or ISO texts, bytes are bytes or base64. Raises ValueError for a value that does not fit.
    """
    return avro.head + _Writer({}).write(json.loads(avro.text), row, "", "the value")


class _Writer:
    """Writes values. `known` contains the named types so far, each with its namespace."""

    def __init__(self, known: dict[str, tuple[Schema, str]]) -> None:
        self.named_types = known

    def write(self, schema: Schema, value: Any, space: str, where: str) -> bytes:
        """Encode one value."""
        if isinstance(schema, str):
            if schema in self.named_types or f"{space}.{schema}" in self.named_types:
                named_schema, outer = self.named_types.get(f"{space}.{schema}") or self.named_types[schema]
                return self.write(named_schema, value, outer, where)
            schema = {"type": schema}
        if isinstance(schema, list):
            return self._union(schema, value, space, where)
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.write(kind, value, space, where)
        if "name" in schema:
            outer = str(schema.get("namespace", space) or "")
            name = schema["name"] if "." in schema["name"] or not outer else f"{outer}.{schema['name']}"
            self.named_types[name], space = (schema, space), name.rpartition(".")[0]
        try:
            return self._kind(kind, schema, value, space, where)
        except (TypeError, AttributeError, KeyError, IndexError, OverflowError, struct.error) as error:
            raise ValueError(f"{where}: {value!r} is not of type {kind}") from error

    def _kind(self, kind: str, schema: dict[str, Any], value: Any, space: str, where: str) -> bytes:
        if value is None and kind != "null":
            raise ValueError(f"{where} is null, but its type {kind} does not allow null")
        match kind:
            case "null":
                return b""
            case "boolean":
                return b"\1" if value else b"\0"
            case "int" | "long":
                return _long(_number(schema, value))
            case "float" | "double":
                return struct.pack("<f" if kind == "float" else "<d", float(value))
            case "string":
                return _sized(str(value).encode())
            case "bytes":
                return _sized(_raw(schema, value))
            case "fixed":
                return _raw(schema, value).rjust(schema["size"], b"\0")
            case "enum":
                return _long(list(schema["symbols"]).index(value))
            case "array":
                items = b"".join(self.write(schema["items"], item, space, where) for item in value)
                return (_long(len(value)) + items if value else b"") + b"\0"
            case "map":
                pairs = b"".join(
                    _sized(key.encode()) + self.write(schema["values"], item, space, f"{where}.{key}")
                    for key, item in value.items()
                )
                return (_long(len(value)) + pairs if value else b"") + b"\0"
        return b"".join(
            self.write(
                item["type"], value.get(item["name"], item.get("default")), space, f"field '{item['name']}'"
            )
            for item in schema["fields"]
        )

    def _union(self, branches: list[Schema], value: Any, space: str, where: str) -> bytes:
        """Encode the value with the first branch that accepts it."""
        for number, branch in enumerate(branches):
            if (value is None) != (branch == "null"):
                continue
            try:
                return _long(number) + self.write(branch, value, space, where)
            except ValueError:
                if number == len(branches) - 1:
                    raise
        raise ValueError(f"{where}: {value!r} fits no branch of its union")


def _long(number: int) -> bytes:
    """Encode an integer: zigzag, then seven bits per byte, lowest first."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _sized(data: bytes) -> bytes:
    return _long(len(data)) + data


def _number(schema: Mapping[str, Any], value: Any) -> int:
    """Return an integer, or a time as its integer."""
    logical = str(schema.get("logicalType", ""))
    if logical == "date":
        day = date.fromisoformat(value) if isinstance(value, str) else value
        return (day - _EPOCH.date()).days if isinstance(day, date) else int(day)
    if "timestamp" in logical:
        # As Spark shows a time, and test files may.
        moment = (
            datetime.fromisoformat(value.strip().removesuffix(" UTC")) if isinstance(value, str) else value
        )
        if isinstance(moment, datetime):
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return (moment - _EPOCH) // timedelta(microseconds=_MICROS[logical.rpartition("-")[2]])
    if logical.startswith("time-"):
        clock = time.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(clock, time):
            since_midnight = timedelta(
                hours=clock.hour, minutes=clock.minute, seconds=clock.second, microseconds=clock.microsecond
            )
            return since_midnight // timedelta(microseconds=_MICROS[logical.rpartition("-")[2]])
    return int(value)


def _unscaled(schema: Mapping[str, Any], value: Any) -> int:
    """Return a decimal as the integer that Avro stores. Raises ValueError if digits would be lost."""
    precision, scale = schema.get("precision", _EXACT.prec), schema.get("scale", 0)
    with suppress(ArithmeticError):
        number = _EXACT.scaleb(Decimal(str(value)), scale)
        if number.copy_abs() < 10**precision and number == number.to_integral_value():
            return int(number)
    raise ValueError(f"{value!r} is not a decimal of {precision} digits, {scale} of them after the point")


def _raw(schema: Mapping[str, Any], value: Any) -> bytes:
    """Return bytes, decoded from base64 or converted from a decimal."""
    if schema.get("logicalType") == "decimal":
        number = _unscaled(schema, value)
        return number.to_bytes(schema.get("size") or number.bit_length() // 8 + 1, signed=True)
    return base64.b64decode(value, validate=True) if isinstance(value, str) else bytes(value)
