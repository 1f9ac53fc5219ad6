"""Change data capture: rows that describe changes of other rows, and the resulting table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from millstream.connectors.api.ddl import NESTED, outer_type, quote_name
from millstream.connectors.api.values.problem import Problem
from millstream.diagnostics.failure import MillstreamError
from millstream.spec.base import Spec
from millstream.spec.column_names import KnownNames
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

START = "__start_at"
END = "__end_at"
GONE = "__gone"
"""Column that marks deletions while changes are processed."""

UNORDERED = "no sequence: "
"""Prefix of Spark's error for a change without a sequence, followed by the key as JSON."""

_RANK = "__rank"
_NO_ORDER = frozenset({"map", "variant", "void"})


class Cdc(Spec):
    """Treat rows as changes: the newest change of each key is stored, in whatever order the changes arrive."""

    keys: KnownNames = Field(examples=[["order_id"]])
    """Key columns: they identify the row that a change changes."""
    sequence_by: str = Field(examples=["lsn"])
    """Column that orders changes: the greatest value is the newest. A null stops the query."""
    apply_as_deletes: str | None = Field(default=None, examples=["op = 'd'"])
    """Spark SQL condition: a change that meets it deletes the row with its key."""
    except_column_list: KnownNames = ()
    """Columns of the query that are not written."""
    stored_as_scd_type: Literal[1, 2] = 1
    """`1` stores the latest state of each key; `2` its history, with the columns `__start_at` and `__end_at`."""

    @property
    def has_history(self) -> bool:
        """Whether every version of a row is stored."""
        return self.stored_as_scd_type == 2

    @property
    def row_key(self) -> tuple[str, ...]:
        """Key columns of the table."""
        return (*self.keys, self.sequence_by) if self.has_history else self.keys

    @property
    def history_columns(self) -> tuple[str, ...]:
        """Columns that the table has in addition to the query's."""
        return (START, END) if self.has_history else ()

    @property
    def is_deletion(self) -> str:
        """Condition for a change that deletes; null counts as false."""
        return f"coalesce(CAST(({self.apply_as_deletes or 'false'}) AS BOOLEAN), false)"

    def takes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the written columns of a query, ignoring case."""
        excluded = {name.lower() for name in self.except_column_list}
        return tuple(name for name in names if name.lower() not in excluded)

    def named_columns(self) -> Mapping[str, tuple[str, ...]]:
        """Return the columns that settings name, by setting."""
        return {
            "cdc.keys": self.keys,
            "cdc.sequence_by": (self.sequence_by,),
            "cdc.except_column_list": self.except_column_list,
        }

    def problems(self, mode: OutputMode, beside: Mapping[str, object]) -> Iterator[Problem]:
        """Check the settings. `beside` contains the sink's other settings about replacing rows, by name."""
        if mode is not OutputMode.APPEND:
            yield Problem(
                "cdc",
                f"cdc needs rows that are changes, but in {mode} mode the rows of a query are results",
                "write output_mode: append, or merge_on instead of cdc",
                "with cdc, each row of the query must be one change, and the sink computes the result",
            )
        for field in (name for name, value in beside.items() if value):
            yield Problem(
                field,
                f"{field} and cdc cannot be used together",
                f"remove {field}: cdc has keys, apply_as_deletes and except_column_list",
            )
        if not self.keys:
            yield Problem("cdc.keys", "cdc has no key", "set keys to the source table's primary key columns")
        lower = [name.lower() for name in self.keys]
        for name in dict.fromkeys(name for name in self.keys if lower.count(name.lower()) > 1):
            yield Problem("cdc.keys", f"keys names column '{name}' twice", "name it once")
        if self.sequence_by.lower() in lower:
            yield Problem(
                "cdc.sequence_by",
                f"sequence_by is column '{self.sequence_by}', which is also a key",
                "use a column that increases with each change of a row, such as a log position, a version or a "
                "time",
            )
        excluded = {name.lower() for name in self.except_column_list}
        for name in (*self.keys, self.sequence_by):
            if name.lower() in excluded:
                yield Problem(
                    "cdc.except_column_list",
                    f"except_column_list contains column '{name}', which the table needs",
                    f"remove '{name}' from except_column_list",
                    "a change is compared with the existing row by its key and its sequence",
                )

    def refuses(self, columns: Mapping[str, str]) -> Iterator[Problem]:
        """Check for columns that cannot identify or order changes, and for reserved column names."""
        for name, kind in columns.items():
            if name.lower() in (START, END):
                yield Problem(
                    None, f"column '{name}' has the name of a history column", "rename it in the view"
                )
            if outer_type(kind) in _NO_ORDER and name.lower() in map(
                str.lower, (*self.keys, self.sequence_by)
            ):
                field = "cdc.sequence_by" if name.lower() == self.sequence_by.lower() else "cdc.keys"
                yield Problem(
                    field,
                    f"{field.removeprefix('cdc.')} contains column '{name}' of type {kind}, which has no "
                    "order",
                    "use a column with a simple type",
                )

    def plain_only(self, columns: Mapping[str, str]) -> Iterator[Problem]:
        """Check for nested keys and sequences, whose types exist only in Spark."""
        for name, kind in columns.items():
            if outer_type(kind) in set(NESTED) - _NO_ORDER and name in (*self.keys, self.sequence_by):
                field = "cdc.sequence_by" if name == self.sequence_by else "cdc.keys"
                yield Problem(
                    field,
                    f"{field.removeprefix('cdc.')} contains column '{name}' of type {kind}, which is not a "
                    "simple type",
                    "use a column with a simple type",
                )

    def changes(self, rows: DataFrame) -> DataFrame:
        """Return the changes with the written columns and `__gone`. Reading one without a sequence fails."""
        keys = ", ".join(quote_name(name) for name in self.keys)
        raise_unordered = (
            f"raise_error(concat('{UNORDERED}', to_json(struct({keys}), map('ignoreNullFields', 'false'))))"
        )
        ordered = f"if({quote_name(self.sequence_by)} IS NULL, CAST({raise_unordered} AS BOOLEAN), true)"
        columns = [quote_name(name) for name in self.takes(rows.columns)]
        return rows.where(ordered).selectExpr(*columns, f"{self.is_deletion} AS {GONE}")

    def newest(self, changes: DataFrame) -> DataFrame:
        """Return the last change of each key.

        Of several with the greatest sequence, a deletion wins, or else the change with the greatest values as text.
        """
        return self._first(changes, self.keys, [f"{quote_name(self.sequence_by)} DESC"])

    def chained(self, changes: DataFrame) -> DataFrame:
        """Return each change of each key with its validity, `__start_at` and `__end_at`."""
        sequence = quote_name(self.sequence_by)
        partition = ", ".join(quote_name(name) for name in self.keys)
        unique = self._first(changes, (*self.keys, self.sequence_by), [])
        return unique.selectExpr(
            "*",
            f"{sequence} AS {START}",
            f"lead({sequence}) OVER (PARTITION BY {partition} ORDER BY {sequence}) AS {END}",
        )

    def outcome(self, rows: DataFrame) -> DataFrame:
        """Compute the table that results from all of a query's rows."""
        changes = self.changes(rows)
        states = self.chained(changes) if self.has_history else self.newest(changes)
        return states.where(f"NOT {GONE}").drop(GONE)

    def unordered(self, table: str, key: str) -> MillstreamError:
        """Return the error for a change that cannot be ordered."""
        return MillstreamError(
            f"a change for {table} has no sequence value: sequence_by column '{self.sequence_by}' is null, key "
            f"{key}",
            f"filter out rows where {self.sequence_by} IS NULL in the view, or give them a value",
        )

    def _first(self, changes: DataFrame, key_columns: Sequence[str], order: list[str]) -> DataFrame:
        partition = ", ".join(quote_name(name) for name in key_columns)
        values = content_expression(name for name in changes.columns if name != GONE)
        ordered = ", ".join([*order, f"{GONE} DESC", f"{values} DESC"])
        ranked = changes.selectExpr(
            "*", f"row_number() OVER (PARTITION BY {partition} ORDER BY {ordered}) AS {_RANK}"
        )
        return ranked.where(f"{_RANK} = 1").drop(_RANK)


def content_expression(names: Iterator[str] | Sequence[str], table: str = "") -> str:
    """Return a row's values as text, to decide between two changes of one key and sequence."""
    prefix = f"{table}." if table else ""
    values = ", ".join(f"{prefix}{quote_name(name)} AS {quote_name(name)}" for name in names)
    return f"to_json(struct({values}), map('ignoreNullFields', 'false'))"
