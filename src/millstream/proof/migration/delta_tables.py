"""The module `delta.tables` for the code of a proof: tables by path or name are those of the proof's folder."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import expr

from millstream.connectors import spark_formats
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from millstream.proof.migration.tables import ProofTables


def build_delta_modules(
    tables: ProofTables, current: Callable[[], tuple[int, DataFrame | None]]
) -> dict[str, types.ModuleType]:
    """Return the modules by name. `current` returns the number of the query that writes, and its batch.

    A table that does not exist is created empty, with the columns of the batch: the script's own exists already.
    """

    class DeltaTable:
        """A Delta table, as in the Python package of Delta."""

        def __init__(self, spark: SparkSession, java: Any) -> None:
            self._spark = spark
            self._java = java

        @classmethod
        def forPath(cls, sparkSession: SparkSession, path: str, *_more: Any) -> DeltaTable:  # noqa: N802, N803
            """Return the table of a path."""
            query, batch = current()
            if not tables.has(path) and batch is not None:
                tables.write(batch.limit(0), path, spark_formats.DELTA, "append", query)
            tables.note(path, query, spark_formats.DELTA)
            kind = internals.java_class(sparkSession, "io.delta.tables.DeltaTable")
            return cls(sparkSession, kind.forPath(internals.java_session(sparkSession), tables.path(path)))

        forName = forPath  # noqa: N815 - Delta's name

        @classmethod
        def isDeltaTable(cls, _spark: SparkSession, identifier: str) -> bool:  # noqa: N802 - Delta's name
            """Return whether the proof has written a table at a path."""
            return tables.has(identifier)

        def toDF(self) -> DataFrame:  # noqa: N802 - Delta's name
            """Return the rows."""
            return DataFrame(self._java.toDF(), self._spark)

        def alias(self, name: str) -> DeltaTable:
            """Return the table under another name."""
            return DeltaTable(self._spark, self._java.alias(name))

        def merge(self, source: DataFrame, condition: str | Column) -> _Merge:
            """Return a merge of a frame into the table."""
            return _Merge(self._java.merge(internals.java_frame(source), _java(condition)))

        def delete(self, condition: str | Column | None = None) -> None:
            """Delete rows."""
            self._java.delete(*([] if condition is None else [_java(condition)]))

        def update(self, condition: Any = None, set: Any = None) -> None:
            """Change rows."""
            changes = _changes(set)
            self._java.update(*([changes] if condition is None else [_java(condition), changes]))

    package = types.ModuleType("delta")
    module = types.ModuleType("delta.tables")
    vars(module)["DeltaTable"] = DeltaTable
    vars(package).update({"DeltaTable": DeltaTable, "tables": module, "__path__": []})
    vars(package)["configure_spark_with_delta_pip"] = lambda builder, *_args, **_named: builder
    return {"delta": package, "delta.tables": module}


class _Merge:
    """A merge, built clause by clause."""

    def __init__(self, java: Any) -> None:
        self._java = java

    def execute(self) -> None:
        """Run the merge."""
        self._java.execute()

    def withSchemaEvolution(self) -> _Merge:  # noqa: N802 - Delta's name
        """Let the merge add columns."""
        return _Merge(self._java.withSchemaEvolution())

    def __getattr__(self, name: str) -> Callable[..., _Merge]:
        clause = next((clause for clause in _ACTIONS if name.startswith(clause)), None)
        if clause is None:
            raise AttributeError(name)

        def add(condition: Any = None, set: Any = None, values: Any = None) -> _Merge:
            when = getattr(self._java, clause)
            matched = when() if condition is None else when(_java(condition))
            action = getattr(matched, _ACTIONS[clause][name.removeprefix(clause)])
            changes = set if set is not None else values
            return _Merge(action() if changes is None else action(_changes(changes)))

        return add


# The clauses of a merge, longest first, with the methods of their actions in Java.
_UPDATES = {"UpdateAll": "updateAll", "Update": "update", "Delete": "delete"}
_ACTIONS = {
    "whenNotMatchedBySource": _UPDATES,
    "whenNotMatched": {"InsertAll": "insertAll", "Insert": "insert"},
    "whenMatched": _UPDATES,
}


def _java(condition: str | Column) -> Any:
    return internals.java_column(expr(condition) if isinstance(condition, str) else condition)


def _changes(changes: dict[str, Any]) -> Any:
    return {name: _java(value) for name, value in changes.items()}
