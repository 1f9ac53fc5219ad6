"""The written table: create it if it is missing, and check it before the first batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg.sql import SQL, Composed, Identifier, Literal

from millstream.connectors.api.ddl import find_column
from millstream.connectors.postgres.client.connection import LOCK_LIMIT
from millstream.connectors.postgres.client.identifiers import split_table_name
from millstream.connectors.postgres.ledger import MAKING
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psycopg import Connection

# r: table, p: partitioned table. COPY works with nothing else without a trigger.
_WRITABLE = ("r", "p")

# Percentage of a page that is filled when rows are inserted, for a table whose rows are replaced in every batch. The
# new version of a row then has space on the same page, and no index has to change (HOT). This halves the server's
# work for an upsert (benchmarks/sinks.py) and doubles the table's size on disk.
REPLACED_FILLFACTOR = 50

_FIND = SQL(
    "SELECT c.oid, c.relkind, current_setting('server_version_num')::int >= 150000 AND c.relkind = 'r'"
    " AND NOT (c.relhastriggers OR c.relhasrules OR c.relrowsecurity OR c.relhassubclass) AND NOT EXISTS"
    " (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
    " WHERE a.attrelid = c.oid AND a.attcollation <> t.typcollation)"
    " FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"
)
# A cast to char(2) or varchar(2) truncates a longer text silently, so these types have no length here: with -1, char
# is `bpchar`, and not `character`, which is one character. Numbers and times have their precision: a value equals the
# stored one only if it is rounded as the column rounds it.
_COLUMNS = SQL(
    "SELECT attname, attnotnull AND NOT atthasdef AND attidentity = '', attnotnull,"
    " (SELECT typname FROM pg_catalog.pg_type t WHERE t.oid = atttypid), format_type(atttypid, CASE WHEN"
    " atttypid = ANY ('{numeric,time,timetz,timestamp,timestamptz,interval}'::regtype[]) THEN atttypmod ELSE -1 END)"
    " FROM pg_catalog.pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)
# Unique indexes that ON CONFLICT (…) can use: whole-table, over plain columns, checked immediately.
# indnullsnotdistinct was added in Postgres 15; read through JSON, it is simply absent before.
_UNIQUE = SQL(
    "SELECT array_agg(a.attname::text), coalesce((to_jsonb(i)->>'indnullsnotdistinct')::boolean, false)"
    " FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a"
    " ON a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])"
    " WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate"
    " AND i.indpred IS NULL AND i.indexprs IS NULL GROUP BY i.*"
)


@dataclass(frozen=True)
class Table:
    """A table in the database. `needed` columns have no default and allow no null."""

    name: str
    columns: tuple[str, ...]
    needed: frozenset[str]
    filled: frozenset[str]
    unique: Mapping[frozenset[str], bool]
    """Columns of each unique index, and whether it treats nulls as equal."""
    types: Mapping[str, str]
    """The columns' types by the server's own names, `int4`."""
    casts: Mapping[str, str]
    """The columns' types as a cast names them, `integer`, with the precision to which the column rounds."""
    accepts_merge: bool = False
    """Whether MERGE, of Postgres 15, does what ON CONFLICT does: nothing else of the table sees a difference."""

    @property
    def identifier(self) -> Identifier:
        """Schema and table, quoted."""
        return Identifier(*split_table_name(self.name))

    def has_equal_nulls(self, key: tuple[str, ...]) -> bool:
        """Return whether key columns allow nulls and the index treats them as equal, as any other value."""
        return self.unique.get(frozenset(key), False) and not self.filled.issuperset(key)

    def distinct_nulls(self, key: tuple[str, ...]) -> tuple[str, ...]:
        """Return key columns that allow nulls and treat them as distinct, so that two such rows would both stay."""
        return (
            () if self.unique.get(frozenset(key)) else tuple(name for name in key if name not in self.filled)
        )


def has_rows(connection: Connection[Any], name: str) -> bool:
    """Return whether the table exists and has a row. If the role may not read it, it is assumed to have one.

    Waits at most ten seconds for the lock of another session.
    """
    oid, *_ = connection.execute(_FIND, split_table_name(name)).fetchone() or (None,)
    if oid is None:
        return False
    privilege = connection.execute("SELECT has_table_privilege(%s::oid, 'SELECT')", (oid,)).fetchone()
    if privilege is None or not privilege[0]:
        return True
    query = SQL("SELECT 1 FROM {} LIMIT 1").format(Identifier(*split_table_name(name)))
    with connection.transaction():
        connection.execute(LOCK_LIMIT)
        return connection.execute(query).fetchone() is not None


def find_table(connection: Connection[Any], name: str) -> Table | None:
    """Find the table, or None. Raises `NotReady` if the name is a view or a foreign table."""
    row = connection.execute(_FIND, split_table_name(name)).fetchone()
    if row is None:
        return None
    oid, kind, accepts_merge = row
    if kind not in _WRITABLE:
        raise NotReady(f"{name} is a view or a foreign table, and COPY cannot write to it", "name a table")
    columns = connection.execute(_COLUMNS, (oid,)).fetchall()
    return Table(
        name=name,
        columns=tuple(column for column, *_ in columns),
        needed=frozenset(column for column, needed, *_ in columns if needed),
        filled=frozenset(column for column, _, filled, *_ in columns if filled),
        types={column: kind for column, _, _, kind, _ in columns},
        casts={column: cast for column, *_, cast in columns},
        accepts_merge=accepts_merge,
        unique={frozenset(key): same for key, same in connection.execute(_UNIQUE, (oid,)).fetchall()},
    )


def create_table(
    connection: Connection[Any],
    name: str,
    types: Mapping[str, str],
    key: tuple[str, ...],
    fillfactor: int | None = None,
) -> bool:
    """Create missing schema and table, with columns of these types in this order and `key` as the primary key.

    `fillfactor` is a percentage; None keeps the default of Postgres. Returns False if another run has created the
    table meanwhile.
    """
    schema, _ = split_table_name(name)
    columns: list[Composed] = [
        SQL("{} {}").format(Identifier(column), SQL(kind)) for column, kind in types.items()
    ]
    if key:
        columns.append(SQL("PRIMARY KEY ({})").format(comma_separated(key)))
    fillfactor_clause = (
        SQL("") if fillfactor is None else SQL(" WITH (fillfactor = {})").format(Literal(fillfactor))
    )
    with connection.transaction():
        connection.execute(MAKING)
        if connection.execute(_FIND, split_table_name(name)).fetchone() is not None:
            return False
        if not connection.execute(
            "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,)
        ).fetchone():
            connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
        connection.execute(
            SQL("CREATE TABLE {} ({}){}").format(
                Identifier(*split_table_name(name)), SQL(", ").join(columns), fillfactor_clause
            )
        )
    return True


def create_or_alter(
    connection: Connection[Any], name: str, types: Mapping[str, str], key: tuple[str, ...]
) -> None:
    """Create a table as `create_table` does, or give the columns of an existing one these types.

    Waits at most ten seconds for the lock of another session.
    """
    table = find_table(connection, name)
    if table is None:
        create_table(connection, name, types, key)
        return
    changed = [
        SQL("ALTER {0} TYPE {1} USING {0}::{1}").format(Identifier(column), SQL(kind))
        for column, kind in types.items()
        if table.casts.get(column, kind) != kind
    ]
    if changed:
        with connection.transaction():
            connection.execute(LOCK_LIMIT)
            connection.execute(SQL("ALTER TABLE {} {}").format(table.identifier, SQL(", ").join(changed)))


def drop_table(connection: Connection[Any], name: str) -> None:
    """Drop a table if it exists."""
    connection.execute(SQL("DROP TABLE IF EXISTS {}").format(Identifier(*split_table_name(name))))


def require_compatible(
    table: Table, columns: tuple[str, ...], key: tuple[str, ...], setting: str = "merge_on"
) -> None:
    """Raise `NotReady` if the table lacks a column or an index for rows with these columns.

    `setting` is the field that contains the key.
    """
    for column in columns:
        if column not in table.columns:
            similar = find_column(column, table.columns)
            raise NotReady(
                f"table {table.name} has no column '{column}'" + (f"; it has '{similar}'" if similar else ""),
                f"rename it in the view (names are case-sensitive), or ALTER TABLE {table.name} ADD COLUMN",
            )
    if columns and (absent := sorted(table.needed - set(columns))):
        raise NotReady(
            f"column '{absent[0]}' of table {table.name} requires a value, but the query does not have it",
            f"select it in the view, or ALTER TABLE {table.name} ALTER COLUMN {absent[0]} SET DEFAULT …",
        )
    if key and frozenset(key) not in table.unique:
        key_columns = ", ".join(key)
        raise NotReady(
            f"table {table.name} has no unique index on ({key_columns}), which {setting} needs",
            f"CREATE UNIQUE INDEX ON {table.name} ({key_columns})",
        )


def comma_separated(names: tuple[str, ...]) -> Composed:
    """Format names as a quoted list with commas."""
    return SQL(", ").join([Identifier(name) for name in names])
