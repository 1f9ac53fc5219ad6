"""Open a DuckDB file for one transaction, explain its errors, and read its tables."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from millstream.connectors.api.messages import to_printable_line
from millstream.diagnostics.failure import MillstreamError, NotReady, Outage

try:
    import duckdb
except ImportError as error:
    raise NotReady(
        "package duckdb is not installed, which a duckdb sink needs",
        "install it: pip install 'millstream[duckdb]'",
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

# DuckDB locks a file for one process, and within it connections with different settings exclude each other. Queries
# with sinks in one file take turns.
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


@contextmanager
def open_database(path: Path, *, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the file within this context, so that other processes can read it between two batches.

    Raises `Outage` if another process has it open, `NotReady` if it is no database, and explains errors within.
    """
    with _locks[str(path.absolute())]:
        try:
            if not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
            with duckdb.connect(str(path), read_only=read_only) as connection:
                connection.execute("SET TimeZone = 'UTC'")
                yield connection
        except (duckdb.Error, OSError) as error:
            raise explain(error, path) from error


@contextmanager
def transaction(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the file and run one transaction within this context; an exception rolls it back."""
    with open_database(path) as connection:
        connection.begin()
        try:
            yield connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()


def explain(error: duckdb.Error | OSError, path: Path) -> MillstreamError:
    """Explain the error; an `Outage` if a retry may help. Raise the result `from` the error."""
    text = to_printable_line(str(error).split("\n")[0])
    match error:
        case duckdb.IOException() if "Could not set lock" in str(error):
            return Outage(
                f"another process has the DuckDB file {path} open",
                ("close the file in that process; the batch is retried until then"),
            )
        case duckdb.IOException() if "not a valid DuckDB" in str(error):
            return NotReady(f"{path} is not a DuckDB database", "change the path, or move the file away")
        case duckdb.IOException() | duckdb.TransactionException() | duckdb.OutOfMemoryException() | OSError():
            return Outage(
                f"DuckDB file {path} cannot be written: {text}", "free the disk, or correct the path"
            )
        case duckdb.DataError() | duckdb.IntegrityError():
            return MillstreamError(
                f"DuckDB file {path} rejects a row: {text}", "cast or filter the column in the view"
            )
        case _:
            return NotReady(
                f"DuckDB file {path} rejects a statement: {text}", "compare the table with the query"
            )


def quote(name: str) -> str:
    """Quote a name for SQL; a dot separates a schema from its table."""
    return ".".join(quote_column(part) for part in name.split("."))


def quote_column(name: str) -> str:
    """Quote a column's name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def table_columns(connection: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """Return the names of a table's columns; nothing if there is no table."""
    return list(column_types(connection, table))


def column_types(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Return the names and types of a table's columns; nothing if there is no table."""
    schema, _, name = f"main.{table}".rpartition(".")
    rows = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE lower(schema_name) = ? AND lower(table_name) = ?"
        " AND database_name = current_database() ORDER BY column_index",
        (schema.rpartition(".")[2].lower(), name.lower()),
    ).fetchall()
    return dict(rows)


def require_writable(path: Path) -> None:
    """Raise `NotReady` if the file is no database, or if it cannot be written or created."""
    existing = next(above for above in (path.absolute(), *path.absolute().parents) if above.exists())
    if existing.is_dir() and existing == path.absolute():
        raise NotReady(f"{path} is a folder, but a DuckDB database is a file", "change the path")
    if not os.access(existing, os.W_OK):
        raise NotReady(
            f"{existing} cannot be written, so DuckDB file {path} cannot be",
            "grant write permission, or change the path",
        )
    if existing == path.absolute():
        with open_database(path, read_only=True):
            pass


def read_latest_rows(path: Path, table: str, limit: int) -> tuple[list[str], list[list[object]]]:
    """Return column names and up to `limit` rows, those added last first. Raises `NotReady` if there is no table."""
    missing = NotReady(
        f"there is no DuckDB table {table} in {path} yet", "the first run of the pipeline creates it"
    )
    if not path.is_file():
        raise missing
    with open_database(path, read_only=True) as connection:
        names = table_columns(connection, table)
        if not names:
            raise missing
        rows = connection.sql(f"SELECT * FROM {quote(table)} ORDER BY rowid DESC LIMIT {int(limit)}")  # noqa: S608
        columns = [column.to_pylist() for column in rows.to_arrow_table().columns]
    return names, [list(row) for row in zip(*columns, strict=True)]


def read_table(path: Path, table: str, names: Sequence[str]) -> Any:
    """Return these columns of a table in Arrow; None if there is no table."""
    if not path.is_file():
        return None
    with open_database(path, read_only=True) as connection:
        if not table_columns(connection, table):
            return None
        columns = ", ".join(map(quote_column, names))
        return connection.sql(f"SELECT {columns} FROM {quote(table)}").to_arrow_table()  # noqa: S608
