"""The Postgres sink: appends, upserts by key or replaces a table, one transaction a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, PrivateAttr

from millstream.connectors.cdc import Cdc
from millstream.connectors.cut import Cut
from millstream.connectors.dataset import Dataset
from millstream.connectors.ddl import outer
from millstream.connectors.postgres.address import Address, BadAddress, read_address
from millstream.connectors.postgres.naming import (
    LONGEST,
    bad_column,
    bad_name,
    bad_table,
    deletions,
    parts,
)
from millstream.connectors.sink import Sink, SinkIdentity, Writer
from millstream.connectors.source import Problem
from millstream.spec.guarantee import Guarantee
from millstream.spec.mode import OutputMode
from millstream.spec.names import Names
from millstream.spec.secret import Secret, SecretUrl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.asking import Remark
    from millstream.connectors.elsewhere import Place


class PostgresSink(Sink):
    """A table of a PostgreSQL database."""

    kind = "postgres"
    server = "postgres"
    main = "table"
    modes = frozenset(OutputMode)
    refuses_text = "a NUL character"
    sifts = True

    url: SecretUrl = Field(examples=["${POSTGRES_URL}"])
    """The database as `postgresql://user:password@host:port/database?sslmode=require`."""
    user: str | None = None
    """The role to connect as, when the url does not say."""
    password: Secret | None = None
    """Its password, when the url does not carry it."""
    table: str = Field(examples=["purchases", "sales.purchases"])
    """The table, with its schema if it is not in `public`; upper and lower case count."""
    merge_on: Names = ()
    """Key columns: a row whose key the table holds replaces that row, any other is added."""
    columns: Names = ()
    """The columns to write, in the table as in the query; all of them unless given."""
    delete_when: str | None = Field(default=None, examples=["op = 'D'"])
    """A condition in Spark's SQL: a row for which it holds removes the row of its key instead."""
    cdc: Cdc | None = None
    """Rows are changes of a source table: the table is kept at its latest state, or with its history."""
    through: Literal["auto", "driver", "tasks"] = "auto"
    """Which way rows take: `driver`, copied once; `tasks`, staged by each of them. `auto`: the driver if local."""
    create: bool = True
    """Make the table from the query's columns when it does not exist, with its key as its primary key."""
    ledger_schema: str = "millstream"
    """The schema in which the numbers of written batches are kept; the role must own it or may create it."""

    _cut: Cut | None = PrivateAttr(None)

    def writer(self, identity: SinkIdentity) -> Writer:
        """A writer that commits the batch number with the rows."""
        from millstream.connectors.postgres.writer import PostgresWriter  # noqa: PLC0415 - loads psycopg

        return PostgresWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:
        """Exactly-once in every mode."""
        done = (
            "replaces the table's rows"
            if mode is OutputMode.COMPLETE
            else "merges changes by their sequence"
            if self.cdc
            else "upserts rows"
            if self.merge_on
            else "appends rows"
        )
        return Guarantee.EXACTLY_ONCE, f"{done} and records the batch number in one transaction"

    def problems(self, mode: OutputMode) -> list[Problem]:
        """An address that cannot be one, names that Postgres would not take, a missing key."""
        found = []
        try:
            self.address()
        except BadAddress as bad:
            found.append(Problem("url", bad.what, bad.fix))
        if wrong := bad_table(self.table):
            found.append(Problem("table", wrong, "write it as table or schema.table"))
        if wrong := bad_name(self.ledger_schema):
            found.append(Problem("ledger_schema", wrong, "use letters, digits and underscores"))
        for field, names in (("merge_on", self.merge_on), ("columns", self.columns)):
            for name in dict.fromkeys(names):
                if wrong := bad_column(name):
                    found.append(Problem(field, wrong, "rename the column in the view"))
                if names.count(name) > 1:
                    found.append(Problem(field, f"{field} names column '{name}' twice", "name it once"))
        if self.cdc:
            beside = {"merge_on": self.merge_on, "delete_when": self.delete_when, "columns": self.columns}
            found += self.cdc.problems(mode, beside)
        if self.columns and (absent := [key for key in self.merge_on if key not in self.columns]):
            found.append(
                Problem(
                    "merge_on",
                    f"key column '{absent[0]}' is not among the columns that are written",
                    "add it to columns",
                )
            )
        if (
            self.delete_when is not None
            and not self.cdc
            and (not self.merge_on or mode is OutputMode.COMPLETE)
        ):
            found.append(
                Problem(
                    "delete_when",
                    "delete_when needs merge_on, and a mode other than complete",
                    "add merge_on with the columns of the key",
                    "a deletion names the row it removes by its key",
                )
            )
        if mode is OutputMode.UPDATE and not self.row_key:
            found.append(
                Problem(
                    None,
                    "postgres in update mode needs to know the key of a row",
                    "add merge_on with the columns that tell one row from another",
                    "a key comes again whenever its row changes; inserting would keep every version",
                )
            )
        return found

    def takes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those that `columns` names, or all but for those that `cdc` leaves out."""
        if self.cdc:
            return self.cdc.takes(names)
        return tuple(name for name in names if name in self.columns) if self.columns else tuple(names)

    def named(self) -> Mapping[str, tuple[str, ...]]:
        """The key and the columns to write."""
        told = {"merge_on": self.merge_on, "columns": self.columns}
        return told | dict(self.cdc.named()) if self.cdc else told

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """Types that no type of Postgres stands for, and names that it does not take."""
        found: list[Problem] = []
        if self.cdc:
            found += [*self.cdc.refuses(columns), *self.cdc.plain_only(columns)]
        for name, kind in columns.items():
            if outer(kind) in ("interval", "span", "time"):
                found.append(
                    Problem(
                        None,
                        f"postgres gets no column '{name}' of type {kind}",
                        f"cast it in the view: CAST({name} AS STRING) AS {name}",
                    )
                )
            if wrong := bad_column(name):
                found.append(Problem(None, wrong, "rename the column in the view"))
        return found

    def address(self) -> Address:
        """Where to connect and as whom. Raises `BadAddress`."""
        return read_address(self.url, self.user, self.password)

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns of `merge_on`, or of `cdc`."""
        return self.cdc.row_key if self.cdc else tuple(self.merge_on)

    @property
    def routed_by(self) -> tuple[str, ...]:
        """The column that tells which change is newer."""
        return (self.cdc.sequence_by,) if self.cdc else ()

    @property
    def marks(self) -> tuple[str, str] | None:
        """The setting that tells which rows delete, and its condition over the query's columns."""
        if self.cdc:
            return "apply_as_deletes", self.cdc.gone
        return None if self.delete_when is None else ("delete_when", f"coalesce({self.delete_when}, false)")

    @property
    def deletions(self) -> str:
        """The table of the ledger's schema in which `cdc` keeps deletions."""
        return deletions(self.table, self.cdc.stored_as_scd_type if self.cdc else 1)

    @property
    def reorders(self) -> bool:
        """Changes are put in order by their sequence."""
        return self.cdc is not None

    def outcome(self, rows: DataFrame) -> DataFrame | None:
        """What follows from the changes."""
        return self.cdc.outcome(rows) if self.cdc else None

    def apart(self, mode: OutputMode) -> str:  # noqa: ARG002 - the same in all
        """Rows of a table that follows from changes are no changes."""
        return "it follows from changes, and is not written by rows" if self.cdc else ""

    def elsewhere(self, place: Place) -> Sink | None:
        """A table in a schema of its own, made from the query's columns, with a ledger beside it."""
        table = f"{place.prefix}.{self.table.replace('.', '_')[:LONGEST]}"
        return self.model_copy(update={"table": table, "create": True, "ledger_schema": place.prefix})

    def whole(self, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:  # noqa: ARG002
        """The table's rows; none before it is made."""
        from millstream.connectors.postgres.probe import everything  # noqa: PLC0415 - loads psycopg

        return spark.createDataFrame(everything(self, schema.names), schema)

    @property
    def removes(self) -> str | None:
        """The condition of `delete_when`."""
        return self.delete_when

    def held(self, spark: SparkSession, schema: StructType, mode: OutputMode, cut: Cut) -> DataFrame | None:  # noqa: ARG002
        """The table's rows of a cut, through the driver's memory."""
        from millstream.connectors.postgres.reading import rows_of  # noqa: PLC0415 - loads psycopg

        return None if self.delete_when else rows_of(self, spark, schema, cut)

    def into(self, name: str) -> Sink | None:
        """Another table of the same database, made from the query's columns where it is missing."""
        return None if self.cdc else self.model_copy(update={"table": name, "create": True})

    def replacing(self, cut: Cut) -> Sink | None:
        """With a DELETE in the batch's transaction; None of changes, and where the column is a field of another."""
        if len(cut.path) > 1 or self.cdc:
            return None
        made = self.model_copy()
        made._cut = cut  # noqa: SLF001 - a copy of this sink
        return made

    @property
    def replaced(self) -> Cut | None:
        """The rows in whose place its writer puts a batch; None for any other writer."""
        return self._cut

    def discard(self) -> None:
        """Drop the schema that its table and its ledger stand in."""
        from millstream.connectors.postgres.probe import drop  # noqa: PLC0415 - loads psycopg

        drop(self)

    def clearing(self) -> str:
        """A statement for psql."""
        names = [part if part.islower() else f'"{part}"' for part in self.table.split(".")]
        beside = f", {self.ledger_schema}.{self.deletions}" if self.cdc else ""
        return f"TRUNCATE {'.'.join(names)}{beside}"

    def target(self) -> str:
        """The table."""
        return self.table

    def writes_to(self) -> frozenset[str]:
        """The database and the table, when the address can be read."""
        try:
            address = self.address()
        except BadAddress:
            return frozenset()
        return frozenset({f"postgres {address.host}:{address.port}/{address.database} {self.table}"})

    def datasets(self) -> tuple[Dataset, ...]:
        """The table with its schema and database, when the address can be read."""
        try:
            address = self.address()
        except BadAddress:
            return ()
        name = ".".join((address.database, *parts(self.table)))
        return (Dataset(f"postgres://{address.host}:{address.port}", name),)

    def identity(self) -> dict[str, str]:
        """Kind, database and table. The port is left out: a local server takes a free one at each start."""
        address = self.address()
        return {"kind": self.kind, "target": self.table, "database": f"{address.host}/{address.database}"}

    def ask(self, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterable[Remark]:
        """What the database will refuse: rights, columns and their types, the index of the key."""
        from millstream.connectors.postgres.ask import of_sink  # noqa: PLC0415 - checking asks nobody

        return of_sink(self, columns, mode)

    def probe(self) -> None:
        """Raises `NotReady` when the server, the role or the table would refuse the first batch."""
        from millstream.connectors.postgres.probe import probe  # noqa: PLC0415 - loads psycopg

        probe(self)

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """The rows written last, as far as their place tells; raises `NotReady` when out of reach."""
        from millstream.connectors.postgres.probe import latest  # noqa: PLC0415 - loads psycopg

        return latest(self, limit)
