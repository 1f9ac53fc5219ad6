"""Check a database for `check --connect`: permissions, the table's columns and types, the index of its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from millstream.connectors.api.values.connectivity import ConnectivityFinding
from millstream.connectors.postgres import table as tables
from millstream.connectors.postgres.client.connection import connect
from millstream.connectors.postgres.client.errors import explain
from millstream.connectors.postgres.client.identifiers import split_table_name
from millstream.connectors.postgres.copy.types import find_mismatch
from millstream.connectors.postgres.probe import require_create_privilege, require_privileges
from millstream.diagnostics.failure import NotReady, Outage, Unreachable
from millstream.diagnostics.finding import Severity
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from millstream.connectors.postgres.sink import PostgresSink

_TYPES = (
    "SELECT attname, format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute"
    " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
)


def check_sink(
    sink: PostgresSink, columns: Mapping[str, str] | None, mode: OutputMode
) -> Iterator[ConnectivityFinding]:
    """Find what makes the database reject the rows. Raises `Unreachable` if it refuses the login. Changes nothing."""
    address = sink.address()
    try:
        opened = connect(address, "millstream check")
    except Outage:
        raise
    except NotReady as refusal:
        raise Unreachable(refusal.what, refusal.fix) from refusal
    with opened as connection:
        try:
            yield from _check_table(connection, sink, columns, mode)
        except psycopg.Error as error:
            raise explain(error, address.label, sink.table) from error


def _check_table(
    connection: psycopg.Connection[Any],
    sink: PostgresSink,
    columns: Mapping[str, str] | None,
    mode: OutputMode,
) -> Iterator[ConnectivityFinding]:
    ledger = sink.ledger_schema
    yield from _report_refusal(
        lambda: require_create_privilege(connection, ledger, "the batch ledger", "fence"),
        "MS567",
        "ledger_schema",
    )
    try:
        table = tables.find_table(connection, sink.table)
    except NotReady as view:
        yield ConnectivityFinding("MS561", view.what, "table", fix=view.fix)
        return
    schema, name = split_table_name(sink.table)
    if table is None:
        if sink.create:
            yield from _report_refusal(
                lambda: require_create_privilege(connection, schema, f"table {sink.table}", name),
                "MS567",
                "table",
            )
        else:
            yield ConnectivityFinding(
                "MS561",
                f"there is no table {sink.table}",
                "table",
                fix="create it, or remove `create: false`",
            )
        return
    written_columns = _written_columns(sink, columns)
    key_setting = "cdc" if sink.cdc else "merge_on"
    yield from _report_refusal(
        lambda: tables.require_compatible(table, tuple(written_columns), ()), "MS568", "table"
    )
    yield from _report_refusal(
        lambda: tables.require_compatible(table, (), sink.row_key, key_setting), "MS569", key_setting
    )
    yield from _report_refusal(
        lambda: require_privileges(connection, sink.table, _required_privileges(sink, mode)), "MS567", "table"
    )
    table_types = dict(connection.execute(_TYPES, (f'"{schema}"."{name}"',)).fetchall())
    for column, query_type in written_columns.items():
        if (
            column in table_types
            and query_type
            and (mismatch := find_mismatch(query_type, table_types[column]))
        ):
            yield ConnectivityFinding(
                "MS568",
                f"column '{column}' of table {sink.table} is {table_types[column]}, but the query's column "
                f"is {query_type}",
                "table",
                mismatch.why,
                f"cast it in the view, or "
                f"ALTER TABLE {sink.table} ALTER COLUMN {column} TYPE {mismatch.fitting_type}",
                Severity.ERROR if mismatch.accepts_nothing else Severity.WARNING,
            )


def _report_refusal(check: Callable[[], None], code: str, field: str) -> Iterator[ConnectivityFinding]:
    """Convert the `NotReady` of a check into a finding."""
    try:
        check()
    except NotReady as error:
        yield ConnectivityFinding(code, error.what, field, fix=error.fix)


def _written_columns(sink: PostgresSink, columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return the written columns, with their types if known."""
    query_columns = dict(columns or {})
    if sink.cdc and columns is not None:
        kind = query_columns.get(sink.cdc.sequence_by, "")
        return {name: query_columns[name] for name in sink.takes(list(query_columns))} | dict.fromkeys(
            sink.cdc.history_columns, kind
        )
    return {name: query_columns.get(name, "") for name in sink.columns} if sink.columns else query_columns


def _required_privileges(sink: PostgresSink, mode: OutputMode) -> tuple[str, ...]:
    """Return the permissions that the writer needs on the table."""
    if mode is OutputMode.COMPLETE:
        return ("INSERT", "TRUNCATE")
    if sink.cdc or sink.delete_when:
        return ("SELECT", "INSERT", "UPDATE", "DELETE")
    return ("SELECT", "INSERT", "UPDATE") if sink.merge_on else ("INSERT",)
