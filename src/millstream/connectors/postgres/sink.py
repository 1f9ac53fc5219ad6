"""Postgres sink: append rows, upsert them by key, or replace the table, in one transaction per batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, PrivateAttr

from millstream.connectors.api.cdc import Cdc
from millstream.connectors.api.ddl import outer_type
from millstream.connectors.api.json_keys import json_key_problems
from millstream.connectors.api.row_key import key_problems
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.values.event_time_range import EventTimeRange
from millstream.connectors.api.values.lineage_dataset import LineageDataset
from millstream.connectors.api.values.problem import Problem
from millstream.connectors.postgres.client.address import Address, BadAddress, read_address
from millstream.connectors.postgres.client.identifiers import (
    LONGEST,
    canonical_name,
    column_problem,
    deletions_table,
    name_problem,
    split_table_name,
    table_problem,
)
from millstream.connectors.postgres.system import POSTGRES
from millstream.spec.column_names import KnownNames
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode
from millstream.spec.secrets.secret import Secret, SecretUrl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.values.connectivity import ConnectivityFinding
    from millstream.connectors.api.values.sandbox import Sandbox
    from millstream.connectors.api.writer import SinkIdentity, Writer


class PostgresSink(Sink):
    """A table of a PostgreSQL database."""

    kind = "postgres"
    server = "postgres"
    system = POSTGRES
    main = "table"
    modes = frozenset(OutputMode)
    refuses_text = "a NUL character"
    can_roll_back = True
    accepts_rows = True
    task_packages = ("pgpq", "psycopg", "pyarrow", "pydantic")

    url: SecretUrl = Field(examples=["${POSTGRES_URL}"])
    """Database as `postgresql://user:password@host:port/database?sslmode=require`."""
    user: str | None = None
    """Role to connect as, if the url contains none."""
    password: Secret | None = None
    """Password of the role, if the url contains none."""
    table: str = Field(examples=["purchases", "sales.purchases"])
    """Table, with its schema unless it is in `public`. Names are case-sensitive."""
    merge_on: KnownNames = ()
    """Key columns: a row replaces the table row with the same key; other rows are added."""
    columns: KnownNames = ()
    """Columns to write, with the same names in the table and the query. Default: all columns."""
    delete_when: str | None = Field(default=None, examples=["op = 'D'"])
    """Spark SQL condition: a row that meets it deletes the table row with its key."""
    cdc: Cdc | None = None
    """Treat rows as changes of a source table: keep the table at its latest state, or with its history."""
    through: Literal["auto", "driver", "tasks"] = "auto"
    """How rows get to the database: with `driver`, the driver collects a batch and copies it; with `tasks`, each
    Spark task copies its rows into a staging table. `auto` uses the driver if Spark is local."""
    create: bool = True
    """Create a missing table from the query's columns, with the key as its primary key."""
    ledger_schema: str = "millstream"
    """Schema of the batch ledger. The role must own it or be allowed to create it."""

    _time_range: EventTimeRange | None = PrivateAttr(None)

    def writer(self, identity: SinkIdentity) -> Writer:
        """Create a writer that commits the batch id with the rows."""
        from millstream.connectors.postgres.writer import PostgresWriter  # noqa: PLC0415 - loads psycopg

        return PostgresWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:
        """Guarantee exactly-once in every mode."""
        action = (
            "replaces the table's rows"
            if mode is OutputMode.COMPLETE
            else "merges changes by their sequence"
            if self.cdc
            else "upserts rows"
            if self.merge_on
            else "appends rows"
        )
        return Guarantee.EXACTLY_ONCE, f"{action} and records the batch id in one transaction"

    def problems(self, mode: OutputMode) -> list[Problem]:
        """Check the address, the names, the key and the settings of deletions and changes."""
        problems = []
        try:
            self.address()
        except BadAddress as error:
            problems.append(Problem("url", error.what, error.fix))
        if reason := table_problem(self.table):
            problems.append(Problem("table", reason, "write it as table or schema.table"))
        if reason := name_problem(self.ledger_schema):
            problems.append(Problem("ledger_schema", reason, "use letters, digits and underscores"))
        for field, names in (("merge_on", self.merge_on), ("columns", self.columns)):
            for name in dict.fromkeys(names):
                if reason := column_problem(name):
                    problems.append(Problem(field, reason, "rename the column in the view"))
                if names.count(name) > 1:
                    problems.append(Problem(field, f"{field} names column '{name}' twice", "name it once"))
        if self.cdc:
            other_settings = {
                "merge_on": self.merge_on,
                "delete_when": self.delete_when,
                "columns": self.columns,
            }
            problems += self.cdc.problems(mode, other_settings)
        if self.columns and (absent := [key for key in self.merge_on if key not in self.columns]):
            problems.append(
                Problem(
                    "merge_on",
                    f"key column '{absent[0]}' is not among the written columns",
                    "add it to columns",
                )
            )
        has_key, deletes = bool(self.row_key), self.delete_when is not None and not self.cdc
        problems += key_problems(
            "postgres", mode, has_key=has_key, deletes=deletes, merges=bool(self.merge_on)
        )
        return problems

    def takes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of `columns`, or all except those that `cdc` leaves out."""
        if self.cdc:
            return self.cdc.takes(names)
        return tuple(name for name in names if name in self.columns) if self.columns else tuple(names)

    def named_columns(self) -> Mapping[str, tuple[str, ...]]:
        """Return the key columns and the written columns."""
        columns = {"merge_on": self.merge_on, "columns": self.columns}
        return columns | dict(self.cdc.named_columns()) if self.cdc else columns

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """Check for types and column names that Postgres does not support."""
        problems: list[Problem] = []
        if self.cdc:
            problems += [*self.cdc.refuses(columns), *self.cdc.plain_only(columns)]
        for name, kind in columns.items():
            if outer_type(kind) in ("interval", "span", "time"):
                problems.append(
                    Problem(
                        None,
                        f"postgres cannot store column '{name}' of type {kind}",
                        f"cast it in the view: CAST({name} AS STRING) AS {name}",
                    )
                )
            if reason := column_problem(name):
                problems.append(Problem(None, reason, "rename the column in the view"))
        return [*problems, *json_key_problems(columns)]

    def address(self) -> Address:
        """Return the address and the login. Raises `BadAddress`."""
        return read_address(self.url, self.user, self.password)

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns of `merge_on`, or the keys of `cdc`."""
        return self.cdc.row_key if self.cdc else tuple(self.merge_on)

    @property
    def routed_by(self) -> tuple[str, ...]:
        """The sequence column that orders changes."""
        return (self.cdc.sequence_by,) if self.cdc else ()

    @property
    def delete_marker(self) -> tuple[str, str] | None:
        """The setting that marks deletions, and its condition over the query's columns."""
        if self.cdc:
            return "apply_as_deletes", self.cdc.is_deletion
        return None if self.delete_when is None else ("delete_when", f"coalesce({self.delete_when}, false)")

    @property
    def deletions(self) -> str:
        """The table in the ledger schema for the deletions of `cdc`."""
        return deletions_table(self.table, self.cdc.stored_as_scd_type if self.cdc else 1)

    @property
    def orders_by_column(self) -> bool:
        """Whether the sequence of changes decides their order."""
        return self.cdc is not None

    def outcome(self, rows: DataFrame) -> DataFrame | None:
        """Compute the table that results from the changes."""
        return self.cdc.outcome(rows) if self.cdc else None

    def backfill_conflict(self, mode: OutputMode) -> str:  # noqa: ARG002 - the same in all
        """Refuse a backfill of a table that is built from changes."""
        return "it is built from changes, not from rows" if self.cdc else ""

    def in_sandbox(self, sandbox: Sandbox) -> Sink | None:
        """Use a table in a sandbox schema, created from the query's columns, with a ledger in the same schema."""
        table = f"{sandbox.prefix}.{self.table.replace('.', '_')[:LONGEST]}"
        return self.model_copy(update={"table": table, "create": True, "ledger_schema": sandbox.prefix})

    def read_all(self, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:  # noqa: ARG002
        """Read the table's rows through the driver's memory; none before the table exists."""
        from millstream.connectors.postgres.table_reader import read_range  # noqa: PLC0415 - loads psycopg

        return read_range(self, spark, schema, EventTimeRange())

    @property
    def delete_condition(self) -> str | None:
        """The condition of `delete_when`."""
        return self.delete_when

    def read_time_range(
        self,
        spark: SparkSession,
        schema: StructType,
        mode: OutputMode,  # noqa: ARG002
        time_range: EventTimeRange,
    ) -> DataFrame | None:
        """Read the table's rows of a range through the driver's memory."""
        from millstream.connectors.postgres.table_reader import read_range  # noqa: PLC0415 - loads psycopg

        return None if self.delete_when else read_range(self, spark, schema, time_range)

    def into(self, name: str) -> Sink | None:
        """Write to another table of the same database, created from the query's columns if it is missing."""
        return None if self.cdc else self.model_copy(update={"table": name, "create": True})

    def replacing_range(self, time_range: EventTimeRange) -> Sink | None:
        """Replace the range with a DELETE in the transaction; None for changes or a nested time column."""
        if len(time_range.path) > 1 or self.cdc:
            return None
        copy = self.model_copy()
        copy._time_range = time_range  # noqa: SLF001 - a copy of this sink
        return copy

    @property
    def replaced(self) -> EventTimeRange | None:
        """The range that each batch of the writer replaces; None for an ordinary writer."""
        return self._time_range

    def discard(self) -> None:
        """Drop the schema with the table and the ledger."""
        from millstream.connectors.postgres.probe import drop_schema  # noqa: PLC0415 - loads psycopg

        drop_schema(self)

    def clear_command(self) -> str:
        """Return a statement for psql."""
        names = [part if part.islower() else f'"{part}"' for part in self.table.split(".")]
        deletions_table = f", {self.ledger_schema}.{self.deletions}" if self.cdc else ""
        return f"TRUNCATE {'.'.join(names)}{deletions_table}"

    def target(self) -> str:
        """Return the table."""
        return self.table

    def canonical_target(self) -> str:
        """Return the table, with its schema unless that is `public`."""
        return canonical_name(self.table)

    def location(self) -> str:
        """Return host, port and database; empty if the address is invalid."""
        try:
            address = self.address()
        except BadAddress:
            return ""
        return f"{address.host}:{address.port}/{address.database}"

    def matches_identity(self, identity: Mapping[str, str]) -> bool:
        """Return whether database and table are the same; `orders` equals `public.orders`."""
        if not self.location() or canonical_name(identity.get("target", "")) != self.canonical_target():
            return False
        return identity.get("database") == self.identity()["database"]

    def writes_to(self) -> frozenset[str]:
        """Return database and table; nothing if the address is invalid."""
        try:
            self.address()
        except BadAddress:
            return frozenset()
        return frozenset({f"postgres {self.location()} {self.canonical_target()}"})

    def datasets(self) -> tuple[LineageDataset, ...]:
        """Return the table with schema and database; nothing if the address is invalid."""
        try:
            address = self.address()
        except BadAddress:
            return ()
        name = ".".join((address.database, *split_table_name(self.table)))
        return (LineageDataset(f"postgres://{address.host}:{address.port}", name),)

    def identity(self) -> dict[str, str]:
        """Return kind, database and table, but no port: a local server chooses one at each start."""
        address = self.address()
        return {"kind": self.kind, "target": self.table, "database": f"{address.host}/{address.database}"}

    def ask(self, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterable[ConnectivityFinding]:
        """Find what makes the database reject the rows: permissions, columns and types, the index of the key."""
        from millstream.connectors.postgres.connectivity import check_sink  # noqa: PLC0415 - checking does not connect

        return check_sink(self, columns, mode)

    def probe(self) -> None:
        """Raise `NotReady` if the server, the role or the table would reject the first batch."""
        from millstream.connectors.postgres.probe import probe  # noqa: PLC0415 - loads psycopg

        probe(self)

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """Return the latest rows, as far as their physical position shows; raises `NotReady`."""
        from millstream.connectors.postgres.probe import read_latest_rows  # noqa: PLC0415 - loads psycopg

        return read_latest_rows(self, limit)
