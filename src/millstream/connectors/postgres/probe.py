"""Check whether a sink's table can be written, and read its latest rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.sql import SQL, Identifier

from millstream.connectors.postgres import table as tables
from millstream.connectors.postgres.client.connection import connect
from millstream.connectors.postgres.client.errors import explain
from millstream.connectors.postgres.client.identifiers import split_table_name
from millstream.connectors.postgres.client.time_loader import load_every_time
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from millstream.connectors.postgres.sink import PostgresSink

_ACTIONS = {
    "INSERT": "insert into",
    "UPDATE": "update",
    "SELECT": "read",
    "DELETE": "delete from",
    "TRUNCATE": "empty",
}


def probe(sink: PostgresSink) -> None:
    """Raise `NotReady` in one sentence if the first batch would be rejected. Changes nothing."""
    address = sink.address()
    with connect(address, "millstream check") as connection:
        try:
            require_create_privilege(connection, sink.ledger_schema, "the batch ledger", "fence")
            table = tables.find_table(connection, sink.table)
            if table is not None:
                tables.require_compatible(
                    table, sink.columns, sink.row_key, "cdc" if sink.cdc else "merge_on"
                )
                require_privileges(connection, sink.table)
            elif sink.create:
                schema, name = split_table_name(sink.table)
                require_create_privilege(connection, schema, f"table {sink.table}", name)
            else:
                raise NotReady(f"there is no table {sink.table}", "create it, or remove `create: false`")
        except psycopg.Error as error:
            raise explain(error, address.label, sink.table) from error


def read_latest_rows(sink: PostgresSink, limit: int) -> tuple[list[str], list[list[object]]]:
    """Return column names and the rows stored last, by physical position; raises `NotReady`.

    A time that Python does not have, such as `infinity`, is a text.
    """
    address = sink.address()
    with connect(address, "millstream show") as connection:
        load_every_time(connection)
        try:
            # The live page shows an error by then, and the process of a run cannot end while this waits for a lock.
            connection.execute("SET lock_timeout = '5s'; SET statement_timeout = '30s'")
            # The position only approximates a row's age, because freed space is reused.
            query = SQL("SELECT * FROM {} ORDER BY ctid DESC LIMIT %s").format(
                Identifier(*split_table_name(sink.table))
            )
            cursor = connection.execute(query, (limit,))
            return [column.name for column in cursor.description or ()], [
                list(row) for row in cursor.fetchall()
            ]
        except psycopg.errors.UndefinedTable:
            raise NotReady(
                f"there is no table {sink.table} yet", "the first run of the pipeline creates it"
            ) from None
        except psycopg.Error as error:
            raise explain(error, address.label, sink.table) from error


def drop_schema(sink: PostgresSink) -> None:
    """Drop the ledger's schema and everything in it."""
    with connect(sink.address(), "millstream prove") as connection:
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(sink.ledger_schema)))


def require_create_privilege(
    connection: psycopg.Connection[Any], schema: str, purpose: str, table: str
) -> None:
    """Check that the role may create `table` in `schema`, unless it exists. Raises `NotReady`."""
    namespace = connection.execute(
        "SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,)
    ).fetchone()
    if namespace is None:
        query = (
            "SELECT has_database_privilege(current_database(), 'CREATE'), current_user, current_database()"
        )
        is_permitted, role, database = connection.execute(query).fetchone() or (False, "", "")
        fix = f"GRANT CREATE ON DATABASE {database} TO {role}, or CREATE SCHEMA {schema} AUTHORIZATION {role}"
    else:
        query = "SELECT has_schema_privilege(%s::oid, 'CREATE') OR to_regclass(%s) IS NOT NULL, current_user"
        is_permitted, role = connection.execute(
            query, (namespace[0], f'"{schema}"."{table}"')
        ).fetchone() or (
            False,
            "",
        )
        fix = f"GRANT CREATE ON SCHEMA {schema} TO {role}"
    if not is_permitted:
        raise NotReady(f"role '{role}' is not permitted to create {purpose} in schema {schema}", fix)


def require_privileges(
    connection: psycopg.Connection[Any], table: str, privileges: tuple[str, ...] = ("INSERT",)
) -> None:
    """Check that the role has these permissions on the table. Raises `NotReady`."""
    schema, name = split_table_name(table)
    query = "SELECT has_table_privilege(%s, %s), current_user"
    for privilege in privileges:
        is_permitted, role = connection.execute(query, (f'"{schema}"."{name}"', privilege)).fetchone() or (
            False,
            "",
        )
        if not is_permitted:
            raise NotReady(
                f"role '{role}' is not permitted to {_ACTIONS[privilege]} table {table}",
                f"GRANT {', '.join(dict.fromkeys(('SELECT', 'INSERT', 'UPDATE', *privileges)))} ON {table} TO {role}",
            )
