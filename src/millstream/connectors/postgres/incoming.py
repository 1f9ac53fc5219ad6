"""The statements that take rows over from the table they came into, into the table they are for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from psycopg.sql import SQL, Composed, Identifier

from millstream.connectors.postgres.table import commas

if TYPE_CHECKING:
    from millstream.connectors.postgres.rows import Wired
    from millstream.connectors.postgres.table import Table

DELETED = "millstream_deleted"
"""The column that says whether a row stands for its deletion."""


@dataclass(frozen=True)
class Incoming:
    """Rows in a table `place`, those for which `chosen` holds, on their way to `target`."""

    target: Table
    wired: tuple[Wired, ...]
    place: Identifier
    chosen: Composed | SQL = field(default_factory=lambda: SQL("true"))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are written."""
        return tuple(one.name for one in self._columns)

    def _values(self) -> Composed:
        """The columns that are written, in the target's types."""
        return SQL(", ").join(
            Identifier(one.name)
            if one.fits
            else SQL("{}::{} AS {}").format(
                Identifier(one.name), SQL(self.target.casts[one.name]), Identifier(one.name)
            )
            for one in self._columns
        )

    @property
    def _columns(self) -> tuple[Wired, ...]:
        return tuple(one for one in self.wired if one.name != DELETED)

    def insert(self) -> Composed:
        """Add every row."""
        return SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE {}").format(
            self.target.identifier, commas(self.names), self._values(), self.place, self._kept()
        )

    def changes(self) -> Composed:
        """Make a table that ends with the transaction: every row in the target's types, and its mark of deletion."""
        return SQL(
            "CREATE TEMP TABLE millstream_changes ON COMMIT DROP AS SELECT {}, {} FROM {} WHERE {}"
        ).format(self._values(), Identifier(DELETED), self.place, self.chosen)

    def upsert(self, key: tuple[str, ...]) -> Composed:
        """Add every row, or replace the one that has its key."""
        rest = [one.name for one in self._columns if one.name not in key]
        sets = [SQL("{0} = excluded.{0}").format(Identifier(name)) for name in rest]
        act = SQL("UPDATE SET {}").format(SQL(", ").join(sets)) if rest else SQL("NOTHING")
        return SQL("{} ON CONFLICT ({}) DO {}").format(self.insert(), commas(key), act)

    def delete(self, key: tuple[str, ...]) -> Composed:
        """Remove the rows whose keys come with a mark of deletion."""
        casts = {
            one.name: SQL("gone.{}::{}").format(Identifier(one.name), SQL(self.target.casts[one.name]))
            for one in self._columns
        }
        same = [SQL("held.{} = {}").format(Identifier(name), casts[name]) for name in key]
        return SQL("DELETE FROM {} AS held USING {} AS gone WHERE {} AND gone.{} AND {}").format(
            self.target.identifier, self.place, SQL(" AND ").join(same), Identifier(DELETED), self.chosen
        )

    def nulls(self, name: str, shown: tuple[str, ...] = ()) -> Composed:
        """A row without a value in a column, if there is one: its values of `shown`."""
        return SQL("SELECT {} FROM {} WHERE {} IS NULL AND {} LIMIT 1").format(
            commas(shown) if shown else SQL("1"), self.place, Identifier(name), self.chosen
        )

    def repeated(self, key: tuple[str, ...]) -> Composed:
        """A key that comes more than once, and how often."""
        return SQL("SELECT {0}, count(*) FROM {1} WHERE {2} GROUP BY {0} HAVING count(*) > 1 LIMIT 1").format(
            commas(key), self.place, self._kept()
        )

    def _kept(self) -> Composed | SQL:
        """The condition of rows that are not deletions."""
        if len(self._columns) == len(self.wired):
            return self.chosen
        return SQL("{} AND NOT {}").format(self.chosen, Identifier(DELETED))
