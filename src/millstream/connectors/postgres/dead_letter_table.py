"""Read, count and purge a Postgres table of dead letters."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from millstream.connectors.api.dead_letters import DeadLetter, Group
from millstream.connectors.postgres import table as tables
from millstream.connectors.postgres.client.connection import connect
from millstream.connectors.postgres.client.errors import explain
from millstream.connectors.postgres.client.identifiers import split_table_name
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from millstream.connectors.postgres.sink import PostgresSink

_NAMES = [field.name for field in fields(DeadLetter)]
# The newest first, in a stable order for equal times.
_NEWEST = SQL("at DESC, {} DESC").format(
    SQL(" DESC, ").join(
        map(Identifier, ("source", "topic", "file", "partition", "offset", "batch_id", "query"))
    )
)


def read_rows(sink: PostgresSink) -> Iterator[DeadLetter]:
    """Yield every row of the table; none if it does not exist. Raises `NotReady` or `Outage`."""
    return map(
        _parse_dead_letter,
        _stream_rows(sink, SQL("SELECT {} FROM {}").format(_column_list(), _table_identifier(sink)), []),
    )


def read_latest(sink: PostgresSink, limit: int, sources: Sequence[str]) -> list[DeadLetter]:
    """Return the newest rows, newest first. Raises as `read_rows` does."""
    where, values = SQL("true"), []
    if sources:
        where, values = SQL("source = ANY(%s)"), [list(sources)]
    query = SQL("SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT {}").format(
        _column_list(), _table_identifier(sink), where, _NEWEST, limit
    )
    return [_parse_dead_letter(row) for row in _stream_rows(sink, query, values)]


def count_by_group(sink: PostgresSink, before: datetime | None) -> Counter[Group]:
    """Count dead letters by query, source and reason. Raises as `read_rows` does."""
    where, values = SQL("true"), []
    if before is not None:
        where, values = SQL("at < %s"), [before]
    query = SQL("SELECT query, source, reason, count(*) FROM {} WHERE {} GROUP BY 1, 2, 3").format(
        _table_identifier(sink), where
    )
    return Counter(
        {(name, source, reason): count for name, source, reason, count in _stream_rows(sink, query, values)}
    )


def purge(sink: PostgresSink, before: datetime | None, source: str | None) -> None:
    """Delete dead letters written before a time, of a source, or all. Raises `NotReady` or `Outage`."""
    conditions, values = [SQL("true")], []
    if before is not None:
        conditions.append(SQL("at < %s"))
        values.append(before)
    if source is not None:
        conditions.append(SQL("source = %s"))
        values.append(source)  # type: ignore[arg-type]
    _delete(sink, SQL(" AND ").join(conditions), values)


def delete_sent(sink: PostgresSink, source: str, written: Mapping[str, Collection[datetime]]) -> None:
    """Delete a source's records of topics that these queries wrote at these times. Raises as `purge` does."""
    pairs = [(query, at) for query, times in written.items() for at in times]
    where = SQL(
        "source = %s AND topic IS NOT NULL AND (query, at) IN (SELECT * FROM unnest(%s::text[], %s::timestamptz[]))"
    )
    _delete(sink, where, [source, [query for query, _ in pairs], [at for _, at in pairs]])


def _delete(sink: PostgresSink, where: Composed | SQL, values: list[Any]) -> None:
    query = SQL("WITH gone AS (DELETE FROM {} WHERE {}) SELECT 1").format(_table_identifier(sink), where)
    for _ in _stream_rows(sink, query, values):
        pass


def _column_list() -> Composed:
    return SQL(", ").join(map(Identifier, _NAMES))


def _table_identifier(sink: PostgresSink) -> Identifier:
    return Identifier(*split_table_name(sink.table))


def _stream_rows(sink: PostgresSink, query: Composed, values: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement; none if the table does not exist."""
    address = sink.address()
    with connect(address, "millstream deadletter") as connection:
        try:
            if tables.find_table(connection, sink.table) is None:
                return
            # psycopg's default cursor loads the whole result at once.
            with connection.transaction(), connection.cursor() as cursor:
                yield from cursor.stream(query, values)
        except psycopg.errors.UndefinedColumn as missing_column:
            raise NotReady(
                f"table {sink.table} is not a table of dead letters: {missing_column.diag.message_primary}",
                "set dead_letters to another table; it is created if missing",
            ) from missing_column
        except psycopg.Error as error:
            raise explain(error, address.label, sink.table) from error


def _parse_dead_letter(values: tuple[Any, ...]) -> DeadLetter:
    """Convert a row to a dead letter."""
    row = dict(zip(_NAMES, values, strict=True))
    headers = json.loads(row["headers"]) if row["headers"] else None
    row["headers"] = headers and [
        {
            "key": header["key"],
            "value": None if header["value"] is None else base64.b64decode(header["value"]),
        }
        for header in headers
    ]
    return DeadLetter(**row)
