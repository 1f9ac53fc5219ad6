"""Reads the tables that a run of the e-commerce pipeline has filled, each with a reader that is not ours."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder

from acceptance.oracle import Counts, Purchase

if TYPE_CHECKING:
    from pathlib import Path

_UTC = pa.timestamp("us", "UTC")


def funnel(path: Path) -> dict[datetime, Counts]:
    """The funnel by window start; empty before the first batch."""
    if not DeltaTable.is_deltatable(str(path)):
        return {}
    read = QueryBuilder().register("funnel", DeltaTable(str(path))).execute("SELECT * FROM funnel").read_all()
    rows = pa.table(read).to_pylist()
    result = {_utc(row.pop("window_start")): row for row in rows}
    assert len(result) == len(rows), "a window stands in the funnel twice"
    return {start: Counts(**{**row, "window_end": _utc(row["window_end"])}) for start, row in result.items()}


def parquet(path: Path) -> dict[str, Purchase]:
    """The purchases in the lake by event id."""
    if not path.is_dir():
        return {}
    parts = ds.partitioning(pa.schema([("day", pa.date32())]), flavor="hive")
    files = [str(file) for file in path.rglob("*.parquet") if not _is_hidden(file.relative_to(path).parts)]
    table = ds.dataset(files, partitioning=parts, partition_base_dir=str(path)).to_table()
    # Spark writes an instant as INT96, which has no zone and means UTC.
    place = table.schema.get_field_index("event_time")
    table = table.set_column(place, "event_time", table["event_time"].cast(pa.timestamp("us")).cast(_UTC))
    return _purchases(table.to_pylist())


def postgres(url: str) -> dict[str, Purchase]:
    """The purchases in the database by event id."""
    with psycopg.connect(url) as connection, connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        if cursor.execute("SELECT to_regclass('purchases') AS found").fetchone() == {"found": None}:
            return {}
        return _purchases(cursor.execute("SELECT * FROM purchases").fetchall())


def _purchases(rows: list[dict[str, Any]]) -> dict[str, Purchase]:
    twice = [key for key, count in Counter(row["event_id"] for row in rows).items() if count > 1]
    assert not twice, f"{len(twice)} purchases stand there twice, such as {twice[0]}"
    return {row["event_id"]: Purchase(*(_utc(row[name]) for name in Purchase._fields)) for row in rows}


def _utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


def _is_hidden(parts: tuple[str, ...]) -> bool:
    """As Spark, Hive and others do, a reader leaves out what begins with a dot or an underscore."""
    return any(part.startswith((".", "_")) for part in parts)
