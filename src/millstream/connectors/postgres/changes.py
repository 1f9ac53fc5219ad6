"""SQL statements that turn changes into a table's latest state, or into its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg.sql import SQL, Composable, Composed, Identifier

from millstream.connectors.api.cdc import END, START
from millstream.connectors.api.messages import to_printable_line
from millstream.connectors.postgres.copy.incoming import DELETED
from millstream.connectors.postgres.table import comma_separated
from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from psycopg import Connection

    from millstream.connectors.api.cdc import Cdc
    from millstream.connectors.postgres.copy.incoming import Incoming

_TEXT = ("text", "character varying", "bpchar")
_CHANGES = Identifier("pg_temp", "millstream_changes")
_CHAIN = Identifier("pg_temp", "millstream_chain")


@dataclass(frozen=True)
class TableChanges:
    """A batch of changes for a table, with the table of all earlier deletions."""

    cdc: Cdc
    incoming: Incoming
    deletions: Identifier

    def take(self, connection: Connection[Any]) -> None:
        """Run the statements in the open transaction.

        Raises `MillstreamError` for a change without a key or a sequence.
        """
        self._refuse_nulls(connection)
        # No other writer may read the deletions until this batch's are stored.
        connection.execute(SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(self.deletions))
        connection.execute(self.incoming.changes())
        connection.execute(SQL("ANALYZE {}").format(_CHANGES))
        for statement in self._history() if self.cdc.has_history else self._latest():
            connection.execute(statement)

    def _refuse_nulls(self, connection: Connection[Any]) -> None:
        table = self.incoming.target.name
        for name in self.cdc.keys:
            if connection.execute(self.incoming.nulls(name)).fetchone():
                raise MillstreamError(
                    f"a change for table {table} has a null key: column '{name}'",
                    f"filter out rows where {name} IS NULL in the view, or give them a value",
                )
        row = connection.execute(self.incoming.nulls(self.cdc.sequence_by, self.cdc.keys)).fetchone()
        if row:
            names = ", ".join(
                f"{name} = {to_printable_line(value)}" for name, value in zip(self.cdc.keys, row, strict=True)
            )
            raise self.cdc.unordered(f"table {table}", names)

    def _latest(self) -> tuple[Composed, ...]:
        names, keys = self.incoming.names, comma_separated(self.cdc.keys)
        mark, sequence = Identifier(DELETED), Identifier(self.cdc.sequence_by)
        target = self.incoming.target.identifier
        later = SQL("{} > {}").format(self._order("excluded"), self._order("held"))
        tie = SQL("{} = {} AND {} > {}").format(
            self._order("excluded"), self._order("held"), self._content("excluded"), self._content("held")
        )
        return (
            SQL(
                "INSERT INTO {gone} AS held ({keys}, {sequence}) SELECT DISTINCT ON ({keys}) {keys}, {sequence}"
                " FROM {coming} AS come WHERE {mark} ORDER BY {keys}, {order} DESC"
                " ON CONFLICT ({keys}) DO UPDATE SET {sequence} = excluded.{sequence} WHERE {later}"
            ).format(
                gone=self.deletions, keys=keys, sequence=sequence, coming=_CHANGES, mark=mark,
                order=self._order("come"), later=later,
            ),
            SQL(
                "DELETE FROM {target} AS held USING {gone} AS gone WHERE {same} AND {held} <= {until}"
                " AND EXISTS (SELECT FROM {coming} AS come WHERE come.{mark} AND {touched})"
            ).format(
                target=target, gone=self.deletions, same=self._same_key("held", "gone"), held=self._order("held"),
                until=self._order("gone"), coming=_CHANGES, mark=mark, touched=self._same_key("held", "come"),
            ),
            SQL(
                "INSERT INTO {target} AS held ({names}) SELECT DISTINCT ON ({keys}) {names} FROM {coming} AS come"
                " WHERE NOT {mark} AND NOT EXISTS (SELECT FROM {gone} AS gone WHERE {same} AND {order} <= {until})"
                " ORDER BY {keys}, {order} DESC, {content} DESC"
                " ON CONFLICT ({keys}) DO UPDATE SET {sets} WHERE {later} OR ({tie})"
            ).format(
                target=target, names=comma_separated(names), keys=keys, coming=_CHANGES, mark=mark,
                gone=self.deletions, same=self._same_key("come", "gone"), order=self._order("come"),
                until=self._order("gone"), content=self._content("come"), sets=_sets(names, self.cdc.keys),
                later=later, tie=tie,
            ),
        )  # fmt: skip

    def _history(self) -> tuple[Composed, ...]:
        names, mark, target = self.incoming.names, Identifier(DELETED), self.incoming.target
        key = comma_separated(self.cdc.row_key)
        touched = SQL("EXISTS (SELECT FROM {} AS come WHERE {})").format(
            _CHANGES, self._same_key("held", "come")
        )
        deleted = SQL(", ").join(
            Identifier(name) if name in self.cdc.row_key else SQL("NULL::{}").format(SQL(target.casts[name]))
            for name in names
        )
        values = {
            "gone": self.deletions, "key": key, "coming": _CHANGES, "chain": _CHAIN, "mark": mark,
            "keys": comma_separated(self.cdc.keys), "names": comma_separated(names), "target": target.identifier,
            "touched": touched, "deleted": deleted, "sequence": Identifier(self.cdc.sequence_by),
            "start": Identifier(START), "end": Identifier(END), "order": self._order("event"),
            "content": self._content("event"), "same": self._same_key("held", "chain", self.cdc.row_key),
            "sets": _sets((*names, START, END), self.cdc.row_key),
            "differs": SQL("{} <> {}").format(self._content("held"), self._content("excluded")),
        }  # fmt: skip
        return tuple(
            SQL(text).format(**values)
            for text in (
                "INSERT INTO {gone} ({key}) SELECT {key} FROM {coming} WHERE {mark} ON CONFLICT ({key}) DO NOTHING",
                "CREATE TEMP TABLE millstream_chain ON COMMIT DROP AS SELECT event.*,"
                " lead({sequence}) OVER (PARTITION BY {keys} ORDER BY {order}) AS {end} FROM ("
                "SELECT DISTINCT ON ({key}) * FROM (SELECT {names}, {mark} FROM {coming}"
                " UNION ALL SELECT {names}, false FROM {target} AS held WHERE {touched}"
                " UNION ALL SELECT {deleted}, true FROM {gone} AS held WHERE {touched}) AS event"
                " ORDER BY {key}, {mark} DESC, {content} DESC) AS event",
                "DELETE FROM {target} AS held USING {chain} AS chain WHERE chain.{mark} AND {same}",
                "INSERT INTO {target} AS held ({names}, {start}, {end})"
                " SELECT {names}, {sequence}, {end} FROM {chain} WHERE NOT {mark}"
                " ON CONFLICT ({key}) DO UPDATE SET {sets}"
                " WHERE held.{end} IS DISTINCT FROM excluded.{end} OR {differs}",
            )
        )

    def _order(self, table: str) -> Composed:
        """Return a row's sequence for comparison: text byte by byte, as Spark compares it."""
        kind = self.incoming.target.casts[self.cdc.sequence_by]
        collated = SQL(' COLLATE "C"') if kind in _TEXT else SQL("")
        return SQL("{}.{}{}").format(Identifier(table), Identifier(self.cdc.sequence_by), collated)

    def _content(self, table: str) -> Composed:
        """Return a row's values as text, to decide between two changes of one key and sequence."""
        parts: list[Composable] = [Identifier(table, name) for name in self.incoming.names]
        return SQL('ROW({})::text COLLATE "C"').format(SQL(", ").join(parts))

    def _same_key(self, left: str, right: str, names: tuple[str, ...] = ()) -> Composed:
        """Return the condition that two rows have the same key."""
        return SQL(" AND ").join(
            SQL("{} = {}").format(Identifier(left, name), Identifier(right, name))
            for name in names or self.cdc.keys
        )


def _sets(names: tuple[str, ...], key: tuple[str, ...]) -> Composed:
    return SQL(", ").join(
        SQL("{0} = excluded.{0}").format(Identifier(name)) for name in names if name not in key
    )
