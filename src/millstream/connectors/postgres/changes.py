"""The statements by which changes become a table's latest state, or its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg.sql import SQL, Composable, Composed, Identifier

from millstream.connectors.cdc import END, START
from millstream.connectors.postgres.errors import clean
from millstream.connectors.postgres.incoming import DELETED
from millstream.connectors.postgres.table import commas
from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from psycopg import Connection

    from millstream.connectors.cdc import Cdc
    from millstream.connectors.postgres.incoming import Incoming

_TEXT = ("text", "character varying", "character")
_COMING = Identifier("pg_temp", "millstream_changes")
_CHAIN = Identifier("pg_temp", "millstream_chain")


@dataclass(frozen=True)
class Changes:
    """A batch of changes on its way to a table, with the table of all deletions there have been."""

    cdc: Cdc
    incoming: Incoming
    deletions: Identifier

    def take(self, connection: Connection[Any]) -> None:
        """Run the statements in the open transaction.

        Raises `MillstreamError` at a change without a key or a sequence.
        """
        self._refuse_nulls(connection)
        # Nobody else reads which deletions there have been until this batch's are there.
        connection.execute(SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(self.deletions))
        connection.execute(self.incoming.changes())
        connection.execute(SQL("ANALYZE {}").format(_COMING))
        for statement in self._history() if self.cdc.history else self._latest():
            connection.execute(statement)

    def _refuse_nulls(self, connection: Connection[Any]) -> None:
        table = self.incoming.target.name
        for name in self.cdc.keys:
            if connection.execute(self.incoming.nulls(name)).fetchone():
                raise MillstreamError(
                    f"a change for table {table} has no key: column '{name}' is null",
                    f"leave out rows where {name} IS NULL in the view, or give them a value",
                )
        row = connection.execute(self.incoming.nulls(self.cdc.sequence_by, self.cdc.keys)).fetchone()
        if row:
            shown = ", ".join(
                f"{name} = {clean(str(value))}" for name, value in zip(self.cdc.keys, row, strict=True)
            )
            raise self.cdc.unordered(f"table {table}", shown)

    def _latest(self) -> tuple[Composed, ...]:
        names, keys = self.incoming.names, commas(self.cdc.keys)
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
                gone=self.deletions, keys=keys, sequence=sequence, coming=_COMING, mark=mark,
                order=self._order("come"), later=later,
            ),
            SQL(
                "DELETE FROM {target} AS held USING {gone} AS gone WHERE {same} AND {held} <= {until}"
                " AND EXISTS (SELECT FROM {coming} AS come WHERE come.{mark} AND {touched})"
            ).format(
                target=target, gone=self.deletions, same=self._same("held", "gone"), held=self._order("held"),
                until=self._order("gone"), coming=_COMING, mark=mark, touched=self._same("held", "come"),
            ),
            SQL(
                "INSERT INTO {target} AS held ({names}) SELECT DISTINCT ON ({keys}) {names} FROM {coming} AS come"
                " WHERE NOT {mark} AND NOT EXISTS (SELECT FROM {gone} AS gone WHERE {same} AND {order} <= {until})"
                " ORDER BY {keys}, {order} DESC, {content} DESC"
                " ON CONFLICT ({keys}) DO UPDATE SET {sets} WHERE {later} OR ({tie})"
            ).format(
                target=target, names=commas(names), keys=keys, coming=_COMING, mark=mark, gone=self.deletions,
                same=self._same("come", "gone"), order=self._order("come"), until=self._order("gone"),
                content=self._content("come"), sets=_sets(names, self.cdc.keys), later=later, tie=tie,
            ),
        )  # fmt: skip

    def _history(self) -> tuple[Composed, ...]:
        names, mark, target = self.incoming.names, Identifier(DELETED), self.incoming.target
        key = commas(self.cdc.row_key)
        touched = SQL("EXISTS (SELECT FROM {} AS come WHERE {})").format(_COMING, self._same("held", "come"))
        deleted = SQL(", ").join(
            Identifier(name) if name in self.cdc.row_key else SQL("NULL::{}").format(SQL(target.casts[name]))
            for name in names
        )
        values = {
            "gone": self.deletions, "key": key, "coming": _COMING, "chain": _CHAIN, "mark": mark,
            "keys": commas(self.cdc.keys), "names": commas(names), "target": target.identifier,
            "touched": touched, "deleted": deleted, "sequence": Identifier(self.cdc.sequence_by),
            "start": Identifier(START), "end": Identifier(END), "order": self._order("event"),
            "content": self._content("event"), "same": self._same("held", "chain", self.cdc.row_key),
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
        """A row's sequence as it is compared: text byte by byte, as Spark does it."""
        kind = self.incoming.target.casts[self.cdc.sequence_by]
        collated = SQL(' COLLATE "C"') if kind in _TEXT else SQL("")
        return SQL("{}.{}{}").format(Identifier(table), Identifier(self.cdc.sequence_by), collated)

    def _content(self, table: str) -> Composed:
        """A row's values as a text that decides between two changes of one key and sequence."""
        parts: list[Composable] = [Identifier(table, name) for name in self.incoming.names]
        return SQL('ROW({})::text COLLATE "C"').format(SQL(", ").join(parts))

    def _same(self, one: str, other: str, names: tuple[str, ...] = ()) -> Composed:
        """The condition that two rows have the same key."""
        return SQL(" AND ").join(
            SQL("{} = {}").format(Identifier(one, name), Identifier(other, name))
            for name in names or self.cdc.keys
        )


def _sets(names: tuple[str, ...], key: tuple[str, ...]) -> Composed:
    return SQL(", ").join(
        SQL("{0} = excluded.{0}").format(Identifier(name)) for name in names if name not in key
    )
