"""SQL statements that move rows from a staging table to the target table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg
from psycopg.sql import SQL, Composed, Identifier, Literal

from millstream.connectors.postgres.table import comma_separated

if TYPE_CHECKING:
    from typing import Any, LiteralString

    from psycopg import Connection

    from millstream.connectors.postgres.copy.rows import CopyColumn
    from millstream.connectors.postgres.table import Table

DELETED = "millstream_deleted"
"""Column that marks rows that are deletions."""

# The index finds the rows of a key, as for ON CONFLICT, unless the table is hardly larger than the batch. The planner
# knows little about tables that were just filled, and might read a large target whole.
_BY_INDEX = SQL(
    "SELECT set_config(name, 'off', true)"
    " FROM unnest(ARRAY['enable_hashjoin', 'enable_mergejoin', 'enable_seqscan', 'enable_bitmapscan']) AS name"
    " WHERE pg_relation_size({}::regclass) > 8 * pg_relation_size({}::regclass)"
)


@dataclass(frozen=True)
class Incoming:
    """Rows in the staging table `place` for which `chosen` is true, on their way to `target`."""

    target: Table
    wired: tuple[CopyColumn, ...]
    place: Identifier
    chosen: Composed | SQL = field(default_factory=lambda: SQL("true"))

    @property
    def names(self) -> tuple[str, ...]:
        """The written columns."""
        return tuple(column.name for column in self._columns)

    def _values(self) -> Composed:
        """Return the written columns, cast to the target's types and rounded as its columns round."""
        return SQL(", ").join(
            SQL("{}::{} AS {}").format(
                Identifier(column.name), SQL(self.target.casts[column.name]), Identifier(column.name)
            )
            for column in self._columns
        )

    @property
    def _columns(self) -> tuple[CopyColumn, ...]:
        return tuple(column for column in self.wired if column.name != DELETED)

    def insert(self) -> Composed:
        """Insert every row."""
        return SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE {}").format(
            self.target.identifier,
            comma_separated(self.names),
            self._values(),
            self.place,
            self._not_deleted(),
        )

    def changes(self) -> Composed:
        """Create a temporary table with every row in the target's types and its deletion mark."""
        return SQL(
            "CREATE TEMP TABLE millstream_changes ON COMMIT DROP AS SELECT {}, {} FROM {} WHERE {}"
        ).format(self._values(), Identifier(DELETED), self.place, self.chosen)

    def replace(self, connection: Connection[Any], key: tuple[str, ...]) -> None:
        """Replace the row with the key of each row, or insert it."""
        if self.can_merge(key):
            try:
                with connection.transaction():
                    tables = (self.target.identifier, self.place)
                    connection.execute(_BY_INDEX.format(*(Literal(name.as_string()) for name in tables)))
                    connection.execute(self.merge(key))
            except psycopg.errors.UniqueViolation:
                # Another session inserted a key meanwhile, or the batch has a key twice, which the upsert reports.
                pass
            else:
                return
        connection.execute(self.upsert(key))

    def upsert(self, key: tuple[str, ...]) -> Composed:
        """Insert every row, or replace the row with its key."""
        other_columns = [column.name for column in self._columns if column.name not in key]
        sets = [SQL("{0} = excluded.{0}").format(Identifier(name)) for name in other_columns]
        action = SQL("UPDATE SET {}").format(SQL(", ").join(sets)) if other_columns else SQL("NOTHING")
        return SQL("{} ON CONFLICT ({}) DO {}").format(self.insert(), comma_separated(key), action)

    def merge(self, key: tuple[str, ...]) -> Composed:
        """Replace the row with the key of each row, or insert it. Fails if another session inserts the key meanwhile.

        Without the tentative insert and the row lock of ON CONFLICT, the server's work is a sixth less. The columns
        must contain others than the key, and the key no null that equals another.
        """
        same_key = [SQL("held.{0} = came.{0}").format(Identifier(name)) for name in key]
        sets = [SQL("{0} = came.{0}").format(Identifier(name)) for name in self.names if name not in key]
        values = [SQL("came.{}").format(Identifier(name)) for name in self.names]
        return SQL(
            "MERGE INTO {} AS held USING (SELECT {} FROM {} WHERE {}) AS came ON {}"
            " WHEN MATCHED THEN UPDATE SET {} WHEN NOT MATCHED THEN INSERT ({}) VALUES ({})"
        ).format(
            self.target.identifier,
            self._values(),
            self.place,
            self._not_deleted(),
            SQL(" AND ").join(same_key),
            SQL(", ").join(sets),
            comma_separated(self.names),
            SQL(", ").join(values),
        )

    def can_merge(self, key: tuple[str, ...]) -> bool:
        """Return whether `merge` does what `upsert` does."""
        return (
            self.target.accepts_merge
            and not self.target.has_equal_nulls(key)
            and not set(self.names) <= set(key)
        )

    def delete(self, key: tuple[str, ...]) -> Composed:
        """Delete the rows whose key is marked as deleted."""
        return self._delete("held.{} = {}", key, SQL("true"))

    def delete_nulls(self, key: tuple[str, ...]) -> Composed:
        """Delete the rows whose key is marked as deleted and contains a null, which equals null.

        Not part of `delete`, because Postgres uses no index and no hash table for such a comparison.
        """
        has_null = SQL(" OR ").join([SQL("gone.{} IS NULL").format(Identifier(name)) for name in key])
        return self._delete("held.{} IS NOT DISTINCT FROM {}", key, has_null)

    def _delete(self, comparison: LiteralString, key: tuple[str, ...], condition: Composed | SQL) -> Composed:
        same_key = [SQL(comparison).format(Identifier(name), self._cast("gone", name)) for name in key]
        return SQL("DELETE FROM {} AS held USING {} AS gone WHERE {} AND gone.{} AND {} AND ({})").format(
            self.target.identifier,
            self.place,
            SQL(" AND ").join(same_key),
            Identifier(DELETED),
            self.chosen,
            condition,
        )

    def nulls(self, name: str, columns: tuple[str, ...] = ()) -> Composed:
        """Find a row without a value in a column, and return its values of `columns` as text."""
        texts = SQL(", ").join([SQL("{}::text").format(Identifier(column)) for column in columns])
        return SQL("SELECT {} FROM {} WHERE {} IS NULL AND {} LIMIT 1").format(
            texts if columns else SQL("1"), self.place, Identifier(name), self.chosen
        )

    def repeated(self, key: tuple[str, ...]) -> Composed:
        """Find a key that occurs more than once, as texts, with its number of rows and of deletions."""
        values = [self._cast("come", name) for name in key]
        texts = SQL(", ").join([SQL("{}::text").format(value) for value in values])
        is_deletion = SQL("come.{}").format(Identifier(DELETED)) if self._has_deletions else SQL("false")
        return SQL(
            "SELECT {}, count(*), count(*) FILTER (WHERE {}) FROM {} AS come WHERE {}"
            " GROUP BY {} HAVING count(*) > 1 LIMIT 1"
        ).format(texts, is_deletion, self.place, self.chosen, SQL(", ").join(values))

    def hides_repeated(self, key: tuple[str, ...]) -> bool:
        """Return whether `delete` and `upsert` would accept a key that occurs more than once.

        ON CONFLICT refuses to replace a row twice, but does not check deletions, or rows without anything to replace.
        """
        return self._has_deletions or set(self.names) <= set(key)

    def _cast(self, table: str, name: str) -> Composed:
        """Return a column's value, cast to the target's type."""
        return SQL("{}.{}::{}").format(Identifier(table), Identifier(name), SQL(self.target.casts[name]))

    @property
    def _has_deletions(self) -> bool:
        """Whether a column marks deletions."""
        return len(self._columns) < len(self.wired)

    def _not_deleted(self) -> Composed | SQL:
        """Return the condition for rows that are not deletions."""
        if not self._has_deletions:
            return self.chosen
        return SQL("{} AND NOT {}").format(self.chosen, Identifier(DELETED))
