"""Keeps dead letters in a Postgres table, lists and deletes them."""

from __future__ import annotations

import base64
import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from millstream.connectors.letters import COLUMNS, Keeper, Letter
from millstream.connectors.postgres import table as tables
from millstream.connectors.postgres.connect import connect
from millstream.connectors.postgres.errors import explain
from millstream.connectors.postgres.naming import parts
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.postgres.sink import PostgresSink
    from millstream.connectors.sink import SinkIdentity

# A header's name may hold a NUL character, which jsonb refuses and the text of JSON spells out.
_HEADERS = "to_json(headers, map('ignoreNullFields', 'false')) AS headers"


class PostgresKeeper(Keeper):
    """Keeps the letters of one query: the fence and the ledger of the sink's writer are theirs too."""

    def __init__(self, sink: PostgresSink, identity: SinkIdentity) -> None:
        self._writer = sink.writer(identity)

    def open(self, spark: SparkSession) -> None:
        """Make ledger and table where they are missing, and take over from an earlier start."""
        self._writer.open(spark, _rows(spark.createDataFrame([], COLUMNS)).schema)

    def keep(self, frame: DataFrame, batch_id: int, size: int) -> None:  # noqa: ARG002 - the writer sees for itself
        """One transaction: the rows, and the batch's number in the ledger."""
        self._writer.write(_rows(frame), batch_id)

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


def _rows(frame: DataFrame) -> DataFrame:
    """Letters as the table has them: headers are the text of a JSON array, their bytes in base64."""
    return frame.selectExpr(*(_HEADERS if name == "headers" else f"`{name}`" for name in frame.columns))


def kept(sink: PostgresSink) -> list[Letter]:
    """Every row of the table; none before it is made. Raises `NotReady` or `Outage`."""
    names = [field.name for field in fields(Letter)]
    columns = SQL(", ").join(map(Identifier, names))
    query = SQL("SELECT {} FROM {}").format(columns, Identifier(*parts(sink.table)))
    return [_letter(dict(zip(names, row, strict=True))) for row in _done(sink, query)]


def purge(sink: PostgresSink, before: datetime | None, source: str | None) -> None:
    """Delete letters set aside before a time, of a source, or all. Raises `NotReady` or `Outage`."""
    said, values = [SQL("true")], []
    if before is not None:
        said.append(SQL("at < %s"))
        values.append(before)
    if source is not None:
        said.append(SQL("source = %s"))
        values.append(source)  # type: ignore[arg-type]
    table = Identifier(*parts(sink.table))
    _done(sink, SQL("DELETE FROM {} WHERE {}").format(table, SQL(" AND ").join(said)), values)


def _done(sink: PostgresSink, query: Composed, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
    """What a statement gives, or nothing where there is no table yet."""
    address = sink.address()
    with connect(address, "millstream deadletter") as connection:
        try:
            if tables.find(connection, sink.table) is None:
                return []
            cursor = connection.execute(query, values)
            return cursor.fetchall() if cursor.description else []
        except psycopg.errors.UndefinedColumn as other:
            raise NotReady(
                f"table {sink.table} holds no dead letters: {other.diag.message_primary}",
                "name another table in dead_letters; it is made when it is missing",
            ) from other
        except psycopg.Error as error:
            raise explain(error, address.shown, sink.table) from error


def _letter(row: dict[str, Any]) -> Letter:
    """A row as a letter."""
    told = json.loads(row["headers"]) if row["headers"] else None
    row["headers"] = told and [
        {"key": one["key"], "value": None if one["value"] is None else base64.b64decode(one["value"])}
        for one in told
    ]
    return Letter(**row)
