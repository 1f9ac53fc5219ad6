"""Write sandbox files of a proof: generated JSON records, converted to a file format."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from millstream.connectors.api.csv_text import format_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from millstream.connectors.api.values.sandbox import InputRecord

_INTEGERS = {
    **dict.fromkeys(("tinyint", "byte"), "int8"),
    **dict.fromkeys(("smallint", "short"), "int16"),
    **dict.fromkeys(("int", "integer"), "int32"),
    **dict.fromkeys(("bigint", "long"), "int64"),
}


def write_atomically(folder: Path, name: str, write: Callable[[Path], object]) -> None:
    """Write a hidden file, then rename it, so that readers see it only when it is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{name}"
    write(draft)
    draft.rename(folder / name)


def join_records(records: Sequence[InputRecord]) -> bytes:
    """Join the records, one per line."""
    return b"".join(record.value + b"\n" for record in records)


def join_values(records: Sequence[InputRecord]) -> bytes:
    """Join the column `value` of the records, one per line."""
    return "".join(f"{json.loads(record.value)['value']}\n" for record in records).encode()


def format_csv(
    records: Sequence[InputRecord], columns: Sequence[str], options: Mapping[str, Any], *, header: bool
) -> bytes:
    """Format each record as a CSV line with the values of `columns`; an invalid JSON record stays unchanged.

    `options` are those of Spark's reader.
    """
    lines = [format_line(columns, options)] if header else []
    for record in records:
        try:
            values = json.loads(record.value)
        except ValueError:
            lines.append(record.value.decode())
        else:
            lines.append(format_line((values[name] for name in columns), options))
    return "".join(f"{line}\n" for line in lines).encode()


def to_arrow_table(
    records: Sequence[InputRecord], columns: Mapping[str, str], *, zoned: bool = True
) -> pa.Table:
    """Convert the records to a table. Timestamps are in UTC, and have a zone if `zoned`; in ORC they have none.

    `columns` are names with types in Spark's DDL. A column of a type that proofs do not generate is left out, and is
    therefore read as NULL.
    """
    import pyarrow as pa  # noqa: PLC0415 - for proofs alone

    rows = [json.loads(record.value) for record in records]
    arrays = {}
    for name, ddl in columns.items():
        if (conversion := _arrow_type(ddl.strip().lower(), "UTC" if zoned else None)) is not None:
            kind, convert = conversion
            values = [None if row[name] is None else convert(row[name]) for row in rows]
            arrays[name] = pa.array(values, kind)
    return pa.table(arrays)


def _arrow_type(ddl: str, zone: str | None) -> tuple[pa.DataType, Callable[[Any], Any]] | None:
    """Return Arrow's type for a Spark type, and the function that converts a JSON value. Timestamps get the zone."""
    import pyarrow as pa  # noqa: PLC0415 - for proofs alone

    if ddl in _INTEGERS:
        return pa.type_for_alias(_INTEGERS[ddl]), int
    if ddl.startswith(("decimal", "numeric", "dec")):
        parameters = ddl.partition("(")[2].rstrip(") ") or "10, 0"
        precision, _, scale = parameters.partition(",")
        places = Decimal(1).scaleb(-int(scale or 0))
        return pa.decimal128(int(precision), int(scale or 0)), lambda value: Decimal(str(value)).quantize(
            places
        )
    match ddl:
        case "string":
            return pa.string(), str
        case "binary":
            return pa.binary(), base64.b64decode
        case "float" | "real":
            return pa.float32(), float
        case "double":
            return pa.float64(), float
        case "boolean":
            return pa.bool_(), bool
        case "date":
            return pa.date32(), date.fromisoformat
        case "timestamp" | "timestamp_ltz":
            return pa.timestamp("us", zone), _parse_timestamp
        case "timestamp_ntz":
            return pa.timestamp("us"), _parse_timestamp
        case _:
            return None


def _parse_timestamp(text: str) -> datetime:
    """Parse a timestamp as UTC without a zone."""
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
