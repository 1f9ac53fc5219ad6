"""The table that is written: made when it is missing, and looked over before the first batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg.sql import SQL, Composed, Identifier, Literal

from millstream.connectors.postgres.ledger import MAKING
from millstream.connectors.postgres.naming import parts
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psycopg import Connection

# r: table, p: partitioned table. COPY goes into nothing else without a trigger.
_WRITABLE = ("r", "p")

# The share of a page that is filled when a row is added, in percent, in a table whose rows are replaced batch
# after batch: the new version of a row finds room beside the old one, and no index has to be touched (HOT). It
# halves the server's work for an upsert (benchmarks/sinks.py) and doubles the table's size on disk.
REPLACED_FILLFACTOR = 50

_FIND = SQL(
    "SELECT c.oid, c.relkind FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"
)
_COLUMNS = SQL(
    "SELECT attname, attnotnull AND NOT atthasdef AND attidentity = '', attnotnull,"
    " (SELECT typname FROM pg_catalog.pg_type t WHERE t.oid = atttypid), format_type(atttypid, NULL)"
    " FROM pg_catalog.pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)
# Unique indexes that ON CONFLICT (…) can name: whole-table, over plain columns, checked at once.
# indnullsnotdistinct came with Postgres 15; read through JSON, it is simply absent before.
_UNIQUE = SQL(
    "SELECT array_agg(a.attname::text), coalesce((to_jsonb(i)->>'indnullsnotdistinct')::boolean, false)"
    " FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a"
    " ON a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])"
    " WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate"
    " AND i.indpred IS NULL AND i.indexprs IS NULL GROUP BY i.*"
)


@dataclass(frozen=True)
class Table:
    """A table as it stands in the database. `needed` columns have no default and take no null."""

    name: str
    columns: tuple[str, ...]
    needed: frozenset[str]
    filled: frozenset[str]
    unique: Mapping[frozenset[str], bool]
    """The keys of its unique indexes, and whether two nulls are the same there."""
    types: Mapping[str, str]
    """The columns' types by the server's own names, `int4`."""
    casts: Mapping[str, str]
    """The columns' types as a cast names them, `integer`."""

    @property
    def identifier(self) -> Identifier:
        """Schema and table, quoted."""
        return Identifier(*parts(self.name))

    def distinct_nulls(self, key: tuple[str, ...]) -> tuple[str, ...]:
        """Key columns in which a null is allowed and equals no other: two such rows would both be kept."""
        return (
            () if self.unique.get(frozenset(key)) else tuple(name for name in key if name not in self.filled)
        )


def filled(connection: Connection[Any], name: str) -> bool:
    """Is the table there, with a row in it? Where this role may not look, it is taken to have some."""
    oid, _ = connection.execute(_FIND, parts(name)).fetchone() or (None, None)
    if oid is None:
        return False
    may = connection.execute("SELECT has_table_privilege(%s::oid, 'SELECT')", (oid,)).fetchone()
    if may is None or not may[0]:
        return True
    return (
        connection.execute(SQL("SELECT 1 FROM {} LIMIT 1").format(Identifier(*parts(name)))).fetchone()
        is not None
    )


def find(connection: Connection[Any], name: str) -> Table | None:
    """The table, or None. Raises `NotReady` when the name stands for a view or a foreign table."""
    row = connection.execute(_FIND, parts(name)).fetchone()
    if row is None:
        return None
    oid, kind = row
    if kind not in _WRITABLE:
        raise NotReady(
            f"{name} is a view or a foreign table, which rows cannot be copied into", "name a table"
        )
    columns = connection.execute(_COLUMNS, (oid,)).fetchall()
    return Table(
        name=name,
        columns=tuple(column for column, *_ in columns),
        needed=frozenset(column for column, needed, *_ in columns if needed),
        filled=frozenset(column for column, _, filled, *_ in columns if filled),
        types={column: kind for column, _, _, kind, _ in columns},
        casts={column: cast for column, *_, cast in columns},
        unique={frozenset(key): same for key, same in connection.execute(_UNIQUE, (oid,)).fetchall()},
    )


def make(
    connection: Connection[Any],
    name: str,
    types: Mapping[str, str],
    key: tuple[str, ...],
    fillfactor: int | None = None,
) -> None:
    """Make schema and table if missing: columns of these types in this order, `key` as the primary key.

    `fillfactor` is Postgres' own, in percent; None leaves pages as full as Postgres makes them.
    """
    schema, _ = parts(name)
    columns: list[Composed] = [
        SQL("{} {}").format(Identifier(column), SQL(kind)) for column, kind in types.items()
    ]
    if key:
        columns.append(SQL("PRIMARY KEY ({})").format(commas(key)))
    room = SQL("") if fillfactor is None else SQL(" WITH (fillfactor = {})").format(Literal(fillfactor))
    with connection.transaction():
        connection.execute(MAKING)
        if not connection.execute(
            "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,)
        ).fetchone():
            connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
        connection.execute(
            SQL("CREATE TABLE IF NOT EXISTS {} ({}){}").format(
                Identifier(*parts(name)), SQL(", ").join(columns), room
            )
        )


def fit(table: Table, columns: tuple[str, ...], key: tuple[str, ...], setting: str = "merge_on") -> None:
    """Would the table take rows of these columns? Raises `NotReady` naming the column or index it lacks.

    `setting` is what names the key.
    """
    for column in columns:
        if column not in table.columns:
            near = next((held for held in table.columns if held.lower() == column.lower()), None)
            raise NotReady(
                f"table {table.name} has no column '{column}'" + (f"; it has '{near}'" if near else ""),
                f"rename it in the view (upper and lower case count), or ALTER TABLE {table.name} ADD COLUMN",
            )
    if columns and (absent := sorted(table.needed - set(columns))):
        raise NotReady(
            f"column '{absent[0]}' of table {table.name} must have a value, and the query does not give it",
            f"select it in the view, or ALTER TABLE {table.name} ALTER COLUMN {absent[0]} SET DEFAULT …",
        )
    if key and frozenset(key) not in table.unique:
        named = ", ".join(key)
        raise NotReady(
            f"table {table.name} has no unique index on ({named}), which {setting} needs",
            f"CREATE UNIQUE INDEX ON {table.name} ({named})",
        )


def commas(names: tuple[str, ...]) -> Composed:
    """Names, quoted, with commas between."""
    return SQL(", ").join([Identifier(name) for name in names])
