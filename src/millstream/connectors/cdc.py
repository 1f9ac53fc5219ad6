"""Change data: rows that tell what became of other rows, and the table that follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from millstream.connectors.ddl import NESTED, outer, quoted
from millstream.connectors.source import Problem
from millstream.diagnostics.failure import MillstreamError
from millstream.spec.base import Spec
from millstream.spec.mode import OutputMode
from millstream.spec.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

START = "__start_at"
END = "__end_at"
GONE = "__gone"
"""The column that says, while changes are on their way, whether one deletes."""

UNORDERED = "no sequence: "
"""How Spark's error begins, before the key as JSON, for a change that cannot be put in order."""

_RANK = "__rank"
_NO_ORDER = frozenset({"map", "variant", "void"})


class Cdc(Spec):
    """Rows are changes: of each key the newest counts, in whatever order and in however many batches they come."""

    keys: Names = Field(examples=[["order_id"]])
    """The columns that tell which row a change is about."""
    sequence_by: str = Field(examples=["lsn"])
    """The column that tells which change is newer: the greater value is. A null in it ends the query."""
    apply_as_deletes: str | None = Field(default=None, examples=["op = 'd'"])
    """A condition in Spark's SQL: a change for which it holds deletes the row of its key."""
    except_column_list: Names = ()
    """Columns of the query that are not written."""
    stored_as_scd_type: Literal[1, 2] = 1
    """`1` keeps the latest state of each key; `2` its history, with the columns `__start_at` and `__end_at`."""

    @property
    def history(self) -> bool:
        """Is every version of a row kept?"""
        return self.stored_as_scd_type == 2

    @property
    def row_key(self) -> tuple[str, ...]:
        """What tells the table's rows apart."""
        return (*self.keys, self.sequence_by) if self.history else self.keys

    @property
    def own(self) -> tuple[str, ...]:
        """The columns that the table has beside those of the query."""
        return (START, END) if self.history else ()

    @property
    def gone(self) -> str:
        """The condition of a change that deletes; unknown is no."""
        return f"coalesce(CAST(({self.apply_as_deletes or 'false'}) AS BOOLEAN), false)"

    def takes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of a query's columns that are written, whatever their case."""
        left = {name.lower() for name in self.except_column_list}
        return tuple(name for name in names if name.lower() not in left)

    def named(self) -> Mapping[str, tuple[str, ...]]:
        """The columns that settings name, by the setting."""
        return {
            "cdc.keys": self.keys,
            "cdc.sequence_by": (self.sequence_by,),
            "cdc.except_column_list": self.except_column_list,
        }

    def problems(self, mode: OutputMode, beside: Mapping[str, object]) -> Iterator[Problem]:
        """What cannot work. `beside` are the sink's other settings that say what becomes of a row, by name."""
        if mode is not OutputMode.APPEND:
            yield Problem(
                "cdc",
                f"cdc takes changes, and a query in {mode} mode gives states",
                "write output_mode: append, or merge_on instead of cdc",
                "each row of the query is one change; what it adds up to is the table's affair",
            )
        for field in (name for name, value in beside.items() if value):
            yield Problem(
                field,
                f"{field} and cdc exclude each other",
                f"leave out {field}: cdc has keys, apply_as_deletes and except_column_list",
            )
        if not self.keys:
            yield Problem(
                "cdc.keys", "cdc names no key", "name the columns of the source table's primary key"
            )
        lower = [name.lower() for name in self.keys]
        for name in dict.fromkeys(name for name in self.keys if lower.count(name.lower()) > 1):
            yield Problem("cdc.keys", f"keys names column '{name}' twice", "name it once")
        if self.sequence_by.lower() in lower:
            yield Problem(
                "cdc.sequence_by",
                f"sequence_by names column '{self.sequence_by}', which is a key",
                "name the column that grows with each change of a row: a log position, a version, a time",
            )
        left = {name.lower() for name in self.except_column_list}
        for name in (*self.keys, self.sequence_by):
            if name.lower() in left:
                yield Problem(
                    "cdc.except_column_list",
                    f"except_column_list leaves out column '{name}', which the table needs",
                    f"take '{name}' out of except_column_list",
                    "a change is compared with the row that is there: by its key, and by its sequence",
                )

    def refuses(self, columns: Mapping[str, str]) -> Iterator[Problem]:
        """Columns that no change can be known or ordered by, and names that are the table's own."""
        for name, kind in columns.items():
            if name.lower() in (START, END):
                yield Problem(
                    None, f"column '{name}' has the name of a column of the history", "rename it in the view"
                )
            if outer(kind) in _NO_ORDER and name.lower() in map(str.lower, (*self.keys, self.sequence_by)):
                field = "cdc.sequence_by" if name.lower() == self.sequence_by.lower() else "cdc.keys"
                yield Problem(
                    field,
                    f"{field.removeprefix('cdc.')} names column '{name}' of type {kind}, which has no order",
                    "name a plain column",
                )

    def plain_only(self, columns: Mapping[str, str]) -> Iterator[Problem]:
        """Keys and sequences that hold other values: what has no type of its own outside Spark."""
        for name, kind in columns.items():
            if outer(kind) in set(NESTED) - _NO_ORDER and name in (*self.keys, self.sequence_by):
                field = "cdc.sequence_by" if name == self.sequence_by else "cdc.keys"
                yield Problem(
                    field,
                    f"{field.removeprefix('cdc.')} names column '{name}' of type {kind}, which is no plain value",
                    "name a plain column",
                )

    def changes(self, rows: DataFrame) -> DataFrame:
        """The changes with the columns that are written, and `__gone`. Reading one without a sequence fails."""
        keys = ", ".join(quoted(name) for name in self.keys)
        why = f"raise_error(concat('{UNORDERED}', to_json(struct({keys}), map('ignoreNullFields', 'false'))))"
        ordered = f"if({quoted(self.sequence_by)} IS NULL, CAST({why} AS BOOLEAN), true)"
        written = [quoted(name) for name in self.takes(rows.columns)]
        return rows.where(ordered).selectExpr(*written, f"{self.gone} AS {GONE}")

    def newest(self, changes: DataFrame) -> DataFrame:
        """The one change of each key that counts.

        Of several with the greatest sequence a deletion counts, else the one whose values are greatest as text.
        """
        return self._first(changes, self.keys, [f"{quoted(self.sequence_by)} DESC"])

    def chained(self, changes: DataFrame) -> DataFrame:
        """Each change of each key with the times between which it holds, `__start_at` and `__end_at`."""
        sequence = quoted(self.sequence_by)
        by = ", ".join(quoted(name) for name in self.keys)
        single = self._first(changes, (*self.keys, self.sequence_by), [])
        return single.selectExpr(
            "*",
            f"{sequence} AS {START}",
            f"lead({sequence}) OVER (PARTITION BY {by} ORDER BY {sequence}) AS {END}",
        )

    def outcome(self, rows: DataFrame) -> DataFrame:
        """The table that follows from all of a query's rows."""
        changes = self.changes(rows)
        held = self.chained(changes) if self.history else self.newest(changes)
        return held.where(f"NOT {GONE}").drop(GONE)

    def unordered(self, table: str, key: str) -> MillstreamError:
        """What a person should read of a change that cannot be put in order."""
        return MillstreamError(
            f"a change for {table} has no sequence: sequence_by column '{self.sequence_by}' is null, key {key}",
            f"leave out rows where {self.sequence_by} IS NULL in the view, or give them a value",
        )

    def _first(self, changes: DataFrame, same: Sequence[str], order: list[str]) -> DataFrame:
        by = ", ".join(quoted(name) for name in same)
        values = content(name for name in changes.columns if name != GONE)
        ordered = ", ".join([*order, f"{GONE} DESC", f"{values} DESC"])
        ranked = changes.selectExpr(
            "*", f"row_number() OVER (PARTITION BY {by} ORDER BY {ordered}) AS {_RANK}"
        )
        return ranked.where(f"{_RANK} = 1").drop(_RANK)


def content(names: Iterator[str] | Sequence[str], table: str = "") -> str:
    """The values of a row as a text that decides between two changes of one key and sequence."""
    dot = f"{table}." if table else ""
    parts = ", ".join(f"{dot}{quoted(name)} AS {quoted(name)}" for name in names)
    return f"to_json(struct({parts}), map('ignoreNullFields', 'false'))"
