"""What `check --connect` asks a database: rights, the table's columns and their types, the index of its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from millstream.connectors.asking import Remark
from millstream.connectors.postgres import table as tables
from millstream.connectors.postgres.connect import connect
from millstream.connectors.postgres.errors import explain
from millstream.connectors.postgres.naming import parts
from millstream.connectors.postgres.probe import may_make, may_write
from millstream.connectors.postgres.types import misfit
from millstream.diagnostics.failure import NotReady, Outage, Silent
from millstream.diagnostics.finding import Severity
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from millstream.connectors.postgres.sink import PostgresSink

_TYPES = (
    "SELECT attname, format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute"
    " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
)


def of_sink(sink: PostgresSink, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterator[Remark]:
    """What the database will refuse. Raises `Silent` when it does not let us in. Changes nothing."""
    address = sink.address()
    try:
        opened = connect(address, "millstream check")
    except Outage:
        raise
    except NotReady as refused:
        raise Silent(refused.what, refused.fix) from refused
    with opened as connection:
        try:
            yield from _asked(connection, sink, columns, mode)
        except psycopg.Error as error:
            raise explain(error, address.shown, sink.table) from error


def _asked(
    connection: psycopg.Connection[Any],
    sink: PostgresSink,
    columns: Mapping[str, str] | None,
    mode: OutputMode,
) -> Iterator[Remark]:
    ledger = sink.ledger_schema
    yield from _told(
        lambda: may_make(connection, ledger, "the batch ledger", "fence"), "MS567", "ledger_schema"
    )
    try:
        table = tables.find(connection, sink.table)
    except NotReady as view:
        yield Remark("MS561", view.what, "table", fix=view.fix)
        return
    schema, name = parts(sink.table)
    if table is None:
        if sink.create:
            yield from _told(
                lambda: may_make(connection, schema, f"table {sink.table}", name), "MS567", "table"
            )
        else:
            yield Remark(
                "MS561",
                f"there is no table {sink.table}",
                "table",
                fix="create it, or leave out `create: false`",
            )
        return
    written = _written(sink, columns)
    keyed = "cdc" if sink.cdc else "merge_on"
    yield from _told(lambda: tables.fit(table, tuple(written), ()), "MS568", "table")
    yield from _told(lambda: tables.fit(table, (), sink.row_key, keyed), "MS569", keyed)
    yield from _told(lambda: may_write(connection, sink.table, _rights(sink, mode)), "MS567", "table")
    held = dict(connection.execute(_TYPES, (f'"{schema}"."{name}"',)).fetchall())
    for column, given in written.items():
        if column in held and given and (wrong := misfit(given, held[column])):
            yield Remark(
                "MS568",
                f"column '{column}' of table {sink.table} is {held[column]}, and the query gives {given}",
                "table",
                wrong.why,
                f"cast it in the view, or ALTER TABLE {sink.table} ALTER COLUMN {column} TYPE {wrong.wanted}",
                Severity.ERROR if wrong.always else Severity.WARNING,
            )


def _told(ask: Callable[[], None], code: str, field: str) -> Iterator[Remark]:
    """What a question that raises `NotReady` has to say, as a remark."""
    try:
        ask()
    except NotReady as refused:
        yield Remark(code, refused.what, field, fix=refused.fix)


def _written(sink: PostgresSink, columns: Mapping[str, str] | None) -> dict[str, str]:
    """The columns that are written, with their types as far as they are known."""
    given = dict(columns or {})
    if sink.cdc and columns is not None:
        kind = given.get(sink.cdc.sequence_by, "")
        return {name: given[name] for name in sink.takes(list(given))} | dict.fromkeys(sink.cdc.own, kind)
    return {name: given.get(name, "") for name in sink.columns} if sink.columns else given


def _rights(sink: PostgresSink, mode: OutputMode) -> tuple[str, ...]:
    """What the writer does to the table."""
    if mode is OutputMode.COMPLETE:
        return ("INSERT", "TRUNCATE")
    if sink.cdc:
        return ("SELECT", "INSERT", "UPDATE", "DELETE")
    return ("SELECT", "INSERT", "UPDATE") if sink.merge_on else ("INSERT",)
