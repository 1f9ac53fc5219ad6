"""Asks a database whether a sink can be written, and reads a table's latest rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.sql import SQL, Identifier

from millstream.connectors.postgres import table as tables
from millstream.connectors.postgres.connect import connect
from millstream.connectors.postgres.errors import explain
from millstream.connectors.postgres.naming import parts
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.connectors.postgres.sink import PostgresSink

_DONE = {
    "INSERT": "insert into",
    "UPDATE": "update",
    "SELECT": "read",
    "DELETE": "delete from",
    "TRUNCATE": "empty",
}


def probe(sink: PostgresSink) -> None:
    """Raises `NotReady` in one sentence when the first batch would be refused. Changes nothing."""
    address = sink.address()
    with connect(address, "millstream check") as connection:
        try:
            may_make(connection, sink.ledger_schema, "the batch ledger", "fence")
            table = tables.find(connection, sink.table)
            if table is not None:
                tables.fit(table, sink.columns, sink.row_key, "cdc" if sink.cdc else "merge_on")
                may_write(connection, sink.table)
            elif sink.create:
                schema, name = parts(sink.table)
                may_make(connection, schema, f"table {sink.table}", name)
            else:
                raise NotReady(f"there is no table {sink.table}", "create it, or leave out `create: false`")
        except psycopg.Error as error:
            raise explain(error, address.shown, sink.table) from error


def latest(sink: PostgresSink, limit: int) -> tuple[list[str], list[list[object]]]:
    """Column names and the rows that were stored last, by their physical place; raises `NotReady`."""
    address = sink.address()
    with connect(address, "millstream show") as connection:
        try:
            # A row's place tells its age only roughly: space that was freed by old rows is used again.
            query = SQL("SELECT * FROM {} ORDER BY ctid DESC LIMIT %s").format(Identifier(*parts(sink.table)))
            cursor = connection.execute(query, (limit,))
            return [column.name for column in cursor.description or ()], [
                list(row) for row in cursor.fetchall()
            ]
        except psycopg.errors.UndefinedTable:
            raise NotReady(
                f"there is no table {sink.table} yet", "it is made when the pipeline runs first"
            ) from None
        except psycopg.Error as error:
            raise explain(error, address.shown, sink.table) from error


def everything(sink: PostgresSink, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """All rows of the table, these columns of them; none before it is made."""
    address = sink.address()
    with connect(address, "millstream prove") as connection:
        if tables.find(connection, sink.table) is None:
            return []
        names = SQL(", ").join(map(Identifier, columns))
        query = SQL("SELECT {} FROM {}").format(names, Identifier(*parts(sink.table)))
        return connection.execute(query).fetchall()


def drop(sink: PostgresSink) -> None:
    """Drop the schema of the ledger with all that stands in it."""
    with connect(sink.address(), "millstream prove") as connection:
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(sink.ledger_schema)))


def may_make(connection: psycopg.Connection[Any], schema: str, what: str, table: str) -> None:
    """May the role make `table` in `schema`, where it is not there yet? Raises `NotReady`."""
    there = connection.execute(
        "SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,)
    ).fetchone()
    if there is None:
        query = (
            "SELECT has_database_privilege(current_database(), 'CREATE'), current_user, current_database()"
        )
        allowed, role, database = connection.execute(query).fetchone() or (False, "", "")
        fix = f"GRANT CREATE ON DATABASE {database} TO {role}, or CREATE SCHEMA {schema} AUTHORIZATION {role}"
    else:
        query = "SELECT has_schema_privilege(%s::oid, 'CREATE') OR to_regclass(%s) IS NOT NULL, current_user"
        allowed, role = connection.execute(query, (there[0], f'"{schema}"."{table}"')).fetchone() or (
            False,
            "",
        )
        fix = f"GRANT CREATE ON SCHEMA {schema} TO {role}"
    if not allowed:
        raise NotReady(f"role '{role}' may not make {what} in schema {schema}", fix)


def may_write(connection: psycopg.Connection[Any], table: str, rights: tuple[str, ...] = ("INSERT",)) -> None:
    """May the role do all that to the table? Raises `NotReady`."""
    schema, name = parts(table)
    query = "SELECT has_table_privilege(%s, %s), current_user"
    for right in rights:
        allowed, role = connection.execute(query, (f'"{schema}"."{name}"', right)).fetchone() or (False, "")
        if not allowed:
            raise NotReady(
                f"role '{role}' may not {_DONE[right]} table {table}",
                f"GRANT {', '.join(dict.fromkeys(('SELECT', 'INSERT', 'UPDATE', *rights)))} ON {table} TO {role}",
            )
