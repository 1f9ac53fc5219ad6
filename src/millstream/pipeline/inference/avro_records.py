"""Decode messages in Avro's binary form with a schema that is given, and find the header before them."""

from __future__ import annotations

import io
import json
import struct
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from millstream.diagnostics.failure import InvalidInput, MillstreamError
from millstream.spec.avro.schema import Avro, Header

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# The header of values that were written with a schema registry: a zero byte, then the schema's id in four.
_HEADER_BYTES = 5
# The part of the records that the schema must decode. The others become dead letters.
_ENOUGH = 0.9
# What fastavro raises for bytes that another schema, or none, has written.
_OTHER_BYTES = (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error)


def load_avro_schema(file: Path) -> Avro:
    """Read a schema file. Raises `InvalidInput` if it is missing or not a schema that Spark can read."""
    try:
        return Avro.model_validate({"schema": str(file.resolve())})
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise InvalidInput(
            reason, "--avro-schema names a file with the schema of a record, as JSON (.avsc)"
        ) from None


def decode_avro_values(
    avro: Avro, values: Sequence[bytes], subject: str
) -> tuple[list[dict[str, Any] | None], dict[str, Any]]:
    """Decode each value, or give None for one that the schema does not fit, and return the settings of the header.

    Raises `MillstreamError` if the schema does not fit nine of ten values, with or without a header.
    """
    parsed = _parse(avro)
    plain = [_decode(parsed, value) for value in values]
    with_header = [_decode(parsed, value[_HEADER_BYTES:]) if _has_header(value) else None for value in values]
    is_plain = plain.count(None) <= with_header.count(None)
    rows = plain if is_plain else with_header
    fitting = len(rows) - rows.count(None)
    if fitting < len(rows) * _ENOUGH:
        raise MillstreamError(
            f"the Avro schema fits {fitting:,} of {len(rows):,} values of {subject}, with and without the header "
            "of a schema registry",
            "pass the schema with which the values were written",
        )
    if is_plain:
        return rows, {}
    ids = {
        int.from_bytes(value[1:_HEADER_BYTES])
        for value, row in zip(values, rows, strict=True)
        if row is not None
    }
    return rows, {"header": Header.CONFLUENT.value, **({"id": ids.pop()} if len(ids) == 1 else {})}


def _parse(avro: Avro) -> Any:
    from fastavro import parse_schema  # noqa: PLC0415 - only this command decodes Avro without Spark

    return parse_schema(json.loads(avro.text))


def _decode(parsed: Any, value: bytes) -> dict[str, Any] | None:
    """Return the record that the bytes contain, and nothing else, or None."""
    from fastavro import schemaless_reader  # noqa: PLC0415 - only this command decodes Avro without Spark

    data = io.BytesIO(value)
    try:
        row: Mapping[str, Any] = schemaless_reader(data, parsed, None)  # type: ignore[assignment]
    except _OTHER_BYTES:
        return None
    return dict(row) if data.tell() == len(value) else None


def _has_header(value: bytes) -> bool:
    return value[:1] == b"\0" and len(value) > _HEADER_BYTES
