"""Reads the newest rows of a Delta table without starting Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import fs

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.spec.location import Location


def latest(place: Location, limit: int) -> tuple[list[str], list[list[object]]]:
    """Column names and up to `limit` rows, newest files first. Raises `NotReady` without a table."""
    where = str(place.local or place)
    try:
        table = DeltaTable(where)
    except TableNotFoundError:
        raise NotReady(
            f"there is no Delta table at {where} yet", "it is made when the pipeline runs first"
        ) from None
    try:
        found = _newest(table, place.local, limit)
    except DeltaError:
        # Deletion vectors and other features that a plain reader of Parquet files would read wrongly.
        rows = QueryBuilder().register("held", table).execute(f"SELECT * FROM held LIMIT {int(limit)}")  # noqa: S608
        found = _plain(rows.read_all())
    except OSError as error:
        raise NotReady(
            f"Delta table {where} cannot be read: {error}", "check the path and its rights"
        ) from error
    return found


def table_id(place: Location) -> str:
    """The id that a table got when it was made. Raises `NotReady` without a table."""
    return str(_opened(place).metadata().id)


def _opened(place: Location) -> DeltaTable:
    where = str(place.local or place)
    try:
        return DeltaTable(where)
    except TableNotFoundError:
        raise NotReady(
            f"there is no Delta table at {where}", "correct the path, or run the pipeline that makes it"
        ) from None


def _newest(table: DeltaTable, local: Path | None, limit: int) -> tuple[list[str], list[list[object]]]:
    """The rows of the files that were added last."""
    # Through deltalake's own files a thread of Arrow's comes back to Python, and aborts a process that is ending.
    own = None if local is None else fs.SubTreeFileSystem(str(local), fs.LocalFileSystem())
    data: Any = table.to_pyarrow_dataset(filesystem=own)
    actions = table.get_add_actions(flatten=True)
    # The log has paths as they are in a URL.
    paths = map(unquote, actions["path"].to_pylist())
    times = dict(zip(paths, actions["modification_time"].to_pylist(), strict=True))
    names: list[str] = list(data.schema.names)
    rows: list[list[object]] = []
    parts = sorted(data.get_fragments(), key=lambda part: times.get(part.path, 0), reverse=True)
    for part in parts:
        if len(rows) >= limit:
            break
        rows += _plain(part.to_table(schema=data.schema).slice(0, limit - len(rows)))[1]
    return names, rows


def _plain(table: Any) -> tuple[list[str], list[list[object]]]:
    """An Arrow table as names and rows of Python values."""
    columns = [table.column(place).to_pylist() for place in range(table.num_columns)]
    return list(table.column_names), [list(row) for row in zip(*columns, strict=True)]
