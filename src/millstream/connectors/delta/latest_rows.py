"""Read the newest rows of a Delta table without starting Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import fs

from millstream.connectors.api.values.bucket_options import storage_options
from millstream.connectors.delta.commit.delta_rs_paths import require_delta_rs
from millstream.diagnostics.failure import NotReady, Unreachable

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.spec.location import Location


def read_latest_rows(place: Location, limit: int) -> tuple[list[str], list[list[object]]]:
    """Return column names and up to `limit` rows, newest files first. Raises `NotReady` if there is no table."""
    where = str(place.local or place)
    table = _open_table(place, " yet", "the first run of the pipeline creates it")
    try:
        newest = _newest(table, place.local, limit)
    except DeltaError:
        # Deletion vectors and other features that a plain Parquet reader would read wrongly.
        rows = QueryBuilder().register("held", table).execute(f"SELECT * FROM held LIMIT {int(limit)}")  # noqa: S608
        newest = _to_rows(rows.read_all())
    except OSError as error:
        raise NotReady(
            f"Delta table {where} cannot be read: {error}", "check the path and its permissions"
        ) from error
    return newest


def table_id(place: Location) -> str:
    """Return the id that a table gets when it is created. Raises `NotReady` if there is no table."""
    return str(_open_existing(place).metadata().id)


def newest_version(place: Location) -> int:
    """Return the number of a table's newest version. Raises `NotReady` if there is no table."""
    return _open_existing(place).version()


def _open_existing(place: Location) -> DeltaTable:
    return _open_table(place, "", "correct the path, or run the pipeline that creates it")


def _open_table(place: Location, yet: str, fix: str) -> DeltaTable:
    """Open the table. Raises `NotReady` if there is none, or its storage does not respond."""
    require_delta_rs(place)
    where = str(place.local or place)
    try:
        return DeltaTable(where, storage_options=storage_options(where))
    except TableNotFoundError:
        raise NotReady(f"there is no Delta table at {where}{yet}", fix) from None
    except (DeltaError, OSError) as error:
        reason = str(error).split("\n")[0]
        raise Unreachable(
            f"Delta table {where} cannot be read: {reason}", "check the path, its permissions and its storage"
        ) from error


def _newest(table: DeltaTable, local: Path | None, limit: int) -> tuple[list[str], list[list[object]]]:
    """Return the rows of the files that were added last."""
    # With deltalake's own file system, a thread of Arrow calls back into Python and aborts a process that is ending.
    filesystem = None if local is None else fs.SubTreeFileSystem(str(local), fs.LocalFileSystem())
    dataset: Any = table.to_pyarrow_dataset(filesystem=filesystem)
    add_actions = table.get_add_actions(flatten=True)
    # The log has URL-encoded paths.
    paths = map(unquote, add_actions["path"].to_pylist())
    times = dict(zip(paths, add_actions["modification_time"].to_pylist(), strict=True))
    names: list[str] = list(dataset.schema.names)
    rows: list[list[object]] = []
    fragments = sorted(
        dataset.get_fragments(), key=lambda fragment: times.get(fragment.path, 0), reverse=True
    )
    for fragment in fragments:
        if len(rows) >= limit:
            break
        rows += _to_rows(fragment.to_table(schema=dataset.schema).slice(0, limit - len(rows)))[1]
    return names, rows


def _to_rows(table: Any) -> tuple[list[str], list[list[object]]]:
    """Return column names and rows of an Arrow table as Python values."""
    columns = [table.column(index).to_pylist() for index in range(table.num_columns)]
    return list(table.column_names), [list(row) for row in zip(*columns, strict=True)]
