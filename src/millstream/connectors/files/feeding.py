"""Files of a proof: records that were drawn as JSON, in a format of files, put into a folder whole."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from millstream.connectors.elsewhere import Fed

_WHOLE = {
    **dict.fromkeys(("tinyint", "byte"), "int8"),
    **dict.fromkeys(("smallint", "short"), "int16"),
    **dict.fromkeys(("int", "integer"), "int32"),
    **dict.fromkeys(("bigint", "long"), "int64"),
}


def put(folder: Path, name: str, write: Callable[[Path], object]) -> None:
    """Have a file written where no reader looks, and renamed to its name."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{name}"
    write(part)
    part.rename(folder / name)


def lines(records: Sequence[Fed]) -> bytes:
    """The records themselves, a line each."""
    return b"".join(record.value + b"\n" for record in records)


def texts(records: Sequence[Fed]) -> bytes:
    """The column `value` of each record, a line each."""
    return "".join(f"{json.loads(record.value)['value']}\n" for record in records).encode()


def separated(records: Sequence[Fed], columns: Sequence[str], sep: str, *, header: bool) -> bytes:
    """A line of values for each record, in the order of `columns`; one that is no JSON stays as it is."""
    made = io.StringIO()
    # As Spark writes them: a quotation mark inside a text is escaped, which only a text in quotation marks may have.
    writer = csv.writer(
        made,
        delimiter=sep,
        lineterminator="\n",
        doublequote=False,
        escapechar="\\",
        quoting=csv.QUOTE_NONNUMERIC,
    )
    if header:
        writer.writerow(columns)
    for record in records:
        try:
            values = json.loads(record.value)
        except ValueError:
            made.write(record.value.decode() + "\n")
        else:
            writer.writerow([values[name] for name in columns])
    return made.getvalue().encode()


def table(records: Sequence[Fed], columns: Mapping[str, str], *, zoned: bool = True) -> pa.Table:
    """The records as a table. Instants are in UTC, and say so if `zoned`; ORC's do not.

    `columns` are names with their types in Spark's DDL. A column of a type that proofs draw no values of is left
    out, and so is NULL where it is read.
    """
    import pyarrow as pa  # noqa: PLC0415 - for proofs alone

    rows = [json.loads(record.value) for record in records]
    made = {}
    for name, ddl in columns.items():
        if (found := _type(ddl.strip().lower(), "UTC" if zoned else None)) is not None:
            kind, convert = found
            values = [None if row[name] is None else convert(row[name]) for row in rows]
            made[name] = pa.array(values, kind)
    return pa.table(made)


def _type(ddl: str, zone: str | None) -> tuple[pa.DataType, Callable[[Any], Any]] | None:
    """Arrow's type for one of Spark's, and how a value of JSON becomes one of it. Instants are of that zone."""
    import pyarrow as pa  # noqa: PLC0415 - for proofs alone

    if ddl in _WHOLE:
        return pa.type_for_alias(_WHOLE[ddl]), int
    if ddl.startswith(("decimal", "numeric", "dec")):
        inside = ddl.partition("(")[2].rstrip(") ") or "10, 0"
        precision, _, scale = inside.partition(",")
        places = Decimal(1).scaleb(-int(scale or 0))
        return pa.decimal128(int(precision), int(scale or 0)), lambda given: Decimal(str(given)).quantize(
            places
        )
    match ddl:
        case "string":
            return pa.string(), str
        case "binary":
            return pa.binary(), str.encode
        case "float" | "real":
            return pa.float32(), float
        case "double":
            return pa.float64(), float
        case "boolean":
            return pa.bool_(), bool
        case "date":
            return pa.date32(), date.fromisoformat
        case "timestamp" | "timestamp_ltz":
            return pa.timestamp("us", zone), _moment
        case "timestamp_ntz":
            return pa.timestamp("us"), _moment
        case _:
            return None


def _moment(text: str) -> datetime:
    """An instant in UTC, without saying so."""
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
