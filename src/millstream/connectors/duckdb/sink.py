"""DuckDB sink: append rows, replace them by key, or replace the table, in one transaction per batch."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.api.ddl import type_names
from millstream.connectors.api.row_key import key_problems
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.system import System
from millstream.connectors.api.values.problem import Problem
from millstream.spec.column_names import KnownNames
from millstream.spec.guarantee import Guarantee
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.values.sandbox import Sandbox
    from millstream.connectors.api.writer import SinkIdentity, Writer

# Without a form in Arrow, stored as another type, or (void) fixed to no type by the first batch.
_UNKNOWN = frozenset({"interval", "span", "time", "variant", "void"})
_TABLE = re.compile(r"\w+(\.\w+)?")
LEDGER_SCHEMA = "millstream"


class DuckdbSink(Sink):
    """A table of a DuckDB database file."""

    kind = "duckdb"
    main = "path"
    modes = frozenset(OutputMode)
    is_case_sensitive = False
    is_written_without_spark = True
    system = System(
        failpoints={
            "duckdb.staged": "its rows are ready, and the transaction has not begun",
            "duckdb.open": "its rows are in the table, and the transaction is not committed",
            "duckdb.committed": "the transaction is committed, and the run has no confirmation yet",
        },
        # Later the process has the lock of the file, so that no other could go on.
        undecided="duckdb.staged",
    )

    path: Location = Field(examples=["lake/shop.duckdb"])
    """Database file on this machine; created by the first start."""
    table: str = Field(examples=["purchases", "sales.purchases"])
    """Table, with its schema unless it is in `main`. Created from the query's columns if it is missing."""
    merge_on: KnownNames = ()
    """Key columns: a row replaces the table row with the same key; other rows are added. Null equals null."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """Create a writer that commits the batch id with the rows."""
        from millstream.connectors.duckdb.writer import DuckdbWriter  # noqa: PLC0415 - loads duckdb

        return DuckdbWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:
        """Guarantee exactly-once in every mode."""
        action = "appends rows"
        if mode is OutputMode.COMPLETE:
            action = "replaces the table's rows"
        elif self.merge_on:
            action = "replaces rows by their key"
        return Guarantee.EXACTLY_ONCE, f"{action} and records the batch id in one transaction"

    def target(self) -> str:
        """Return the table."""
        return self.table

    def location(self) -> str:
        """Return the database file."""
        return str(self.path)

    def identity(self) -> dict[str, str]:
        """Return kind, table and file."""
        return {"kind": self.kind, "target": self.table, "path": str(self.path)}

    def writes_to(self) -> frozenset[str]:
        """Return file and table."""
        return frozenset({f"{self.path} {self.table.lower().removeprefix('main.')}"})

    def file(self) -> Path:
        """Return the path of the database file. Only for a local path, which `problems` requires."""
        return self.path.local or Path(self.path)

    def problems(self, mode: OutputMode) -> list[Problem]:
        """Check the path, the table's name and the key."""
        problems = []
        if self.path.local is None:
            problems.append(
                Problem("path", "a DuckDB database must be a file on this machine", "write a local path")
            )
        if not _TABLE.fullmatch(self.table):
            problems.append(
                Problem("table", f"'{self.table}' is not a table's name", "write it as table or schema.table")
            )
        if self.table.lower().startswith(f"{LEDGER_SCHEMA}."):
            problems.append(
                Problem("table", f"schema {LEDGER_SCHEMA} has the batch ledger", "use another schema")
            )
        has_key = bool(self.merge_on)
        problems += key_problems("duckdb", mode, has_key=has_key, deletes=False, merges=has_key)
        lower = [name.lower() for name in self.merge_on]
        problems += [
            Problem("merge_on", f"merge_on names column '{name}' twice", "name it once")
            for name in dict.fromkeys(lower)
            if lower.count(name) > 1
        ]
        return problems

    def named_columns(self) -> Mapping[str, tuple[str, ...]]:
        """Return the key columns."""
        return {"merge_on": self.merge_on}

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """Check for types that do not reach DuckDB."""
        return [
            Problem(
                None,
                f"duckdb cannot store column '{name}' of type {kind}",
                "cast the column in the view, or remove it from the view",
            )
            for name, kind in columns.items()
            if set(type_names(kind)) & _UNKNOWN
        ]

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns of `merge_on`."""
        return tuple(self.merge_on)

    def probe(self) -> None:
        """Raise `NotReady` if the package is not installed, or the file cannot be opened or created."""
        from millstream.connectors.duckdb.database import require_writable  # noqa: PLC0415 - loads duckdb

        require_writable(self.file())

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """Return the rows that were added last; raises `NotReady`."""
        from millstream.connectors.duckdb.database import read_latest_rows  # noqa: PLC0415 - loads duckdb

        return read_latest_rows(self.file(), self.table, limit)

    def read_all(self, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:  # noqa: ARG002
        """Read the table's rows through the driver's memory; none before the table exists."""
        from millstream.connectors.duckdb.database import read_table  # noqa: PLC0415 - loads duckdb
        from millstream.connectors.duckdb.times import create_frame  # noqa: PLC0415 - loads PySpark

        rows = read_table(self.file(), self.table, schema.names)
        return spark.createDataFrame([], schema) if rows is None else create_frame(spark, rows, schema)

    def in_sandbox(self, sandbox: Sandbox) -> Sink | None:
        """Use a database file in the sandbox."""
        return self.model_copy(update={"path": Location(f"{sandbox.path(str(self.path))}.duckdb")})

    def into(self, name: str) -> Sink | None:
        """Write to another table of the same file."""
        return self.model_copy(update={"table": name})

    def clear_command(self) -> str:
        """Return a statement for DuckDB's command line."""
        return f'duckdb {self.path} "DELETE FROM {self.table}"'  # noqa: S608 - for a person to run
