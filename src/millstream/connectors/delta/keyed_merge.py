"""The SQL that merges a batch into a table by the key of `merge_on`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.connectors.api.ddl import empty_text_as_null, quote_name
from millstream.connectors.delta.errors import TWICE

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from millstream.connectors.delta.sink import DeltaSink

GONE = "__removed"
"""Column in a merge's source that marks the rows that delete others."""


@dataclass(frozen=True)
class KeyedMerge:
    """SQL over the rows of one batch."""

    sink: DeltaSink
    schema: StructType
    """The columns of the batch."""
    partition_columns: tuple[str, ...]
    """Those of the table."""

    def unique_rows(self, view: str) -> str:
        """Return SQL for the rows of a view that fails at a duplicate key.

        MERGE itself rejects such a key only if the table already has it; otherwise it would insert both rows.
        """
        key = ", ".join(quote_name(name) for name in self.sink.merge_on)
        stored_key = ", ".join(self._stored_key())
        details = f"struct(struct({key}) AS `key`, `__same_key` AS `rows`, `__same_gone` AS `deletions`)"
        details_json = f"to_json({details}, map('ignoreNullFields', 'false'))"
        return (
            f"SELECT {', '.join(quote_name(name) for name in self.schema.names)} FROM (SELECT *,"  # noqa: S608 - names are quoted
            f" count(*) OVER (PARTITION BY {stored_key}) AS `__same_key`,"
            f" count_if({self.sink.is_deletion}) OVER (PARTITION BY {stored_key}) AS `__same_gone` FROM {view})"
            " WHERE if(`__same_key` = 1, true,"
            f" CAST(raise_error(concat('{TWICE}', {details_json})) AS BOOLEAN))"
        )

    def statement(self, rows: str) -> str:
        """Return the statement that replaces or deletes rows of the table and inserts the others.

        `rows` is SQL for the batch.
        """
        sink = self.sink
        evolve = "WITH SCHEMA EVOLUTION " if sink.merge_schema else ""
        same_key = " AND ".join(
            f"held.{quote_name(key)} <=> {stored}"
            for key, stored in zip(sink.merge_on, self._stored_key("come"), strict=True)
        )
        names, deletes, remains = [quote_name(name) for name in self.schema.names], "", ""
        # `*` demands a value for each column of the table, also for one that the query no longer has.
        update = f"UPDATE SET {', '.join(f'{name} = come.{name}' for name in names)}"
        insert = f"INSERT ({', '.join(names)}) VALUES ({', '.join(f'come.{name}' for name in names)})"  # noqa: S608 - quoted
        if sink.delete_when is not None:
            # The two tables get different aliases. With `*`, the mark would become a column of the table.
            rows = f"SELECT *, {sink.is_deletion} AS `{GONE}` FROM ({rows})"  # noqa: S608 - names are quoted
            deletes, remains = f" WHEN MATCHED AND come.`{GONE}` THEN DELETE", f" AND NOT come.`{GONE}`"
        elif sink.merge_schema:
            update, insert = "UPDATE SET *", "INSERT *"
        actions = f"{deletes} WHEN MATCHED THEN {update} WHEN NOT MATCHED{remains} THEN {insert}"
        return f"MERGE {evolve}INTO {sink.place} AS held USING ({rows}) AS come ON {same_key}{actions}"

    def _stored_key(self, table: str = "") -> list[str]:
        """Return SQL for the key columns of a row as the table has them."""
        texts = empty_text_as_null(self.schema, self.partition_columns, table)
        texts = {name.lower(): text for name, text in texts.items()}
        prefix = f"{table}." if table else ""
        return [texts.get(key.lower(), f"{prefix}{quote_name(key)}") for key in self.sink.merge_on]
