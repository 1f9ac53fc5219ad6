"""Delta sink: append rows, merge them by key, or overwrite the table, with the batch id in the log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field, PrivateAttr

from millstream.connectors.api.cdc import Cdc
from millstream.connectors.api.ddl import NESTED, empty_text_as_null, outer_type, quote_name, type_names
from millstream.connectors.api.row_key import key_problems
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.values.event_time_range import EventTimeRange
from millstream.connectors.api.values.lineage_dataset import LineageDataset, dataset_of_folder
from millstream.connectors.api.values.problem import Problem
from millstream.connectors.delta.commit.limits import SMALL_BATCH, SMALL_TABLE
from millstream.connectors.delta.folder_check import DELETIONS
from millstream.connectors.delta.system import DELTA
from millstream.spec.column_names import KnownNames
from millstream.spec.guarantee import Guarantee
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.values.connectivity import ConnectivityFinding
    from millstream.connectors.api.values.sandbox import Sandbox
    from millstream.connectors.api.writer import SinkIdentity, Writer

# Refused by Delta 4.4 on Spark 4.2, each tested.
_UNKNOWN = frozenset({"interval", "span", "time"})
_NO_FOLDERS = frozenset({*NESTED, "variant", "void"})

_RETENTION = "delta.setTransactionRetentionDuration"
# An outage over a weekend lasts longer than this.
LEAST_DAYS = 7
_UNITS = {
    "second": 1 / 86400,
    "minute": 1 / 1440,
    "hour": 1 / 24,
    "day": 1,
    "week": 7,
    "month": 30,
    "year": 365,
}


class DeltaSink(Sink):
    """A Delta table, in a folder or in Spark's catalog."""

    kind = "delta"
    system = DELTA
    main = "path"
    modes = frozenset(OutputMode)
    is_case_sensitive = False

    path: Location | None = Field(default=None, examples=["lake/funnel"])
    """Folder of the table; created by the first batch."""
    table: str | None = Field(default=None, examples=["sales.funnel"])
    """Name of the table in Spark's catalog, as an alternative to `path`."""
    merge_on: KnownNames = ()
    """Key columns: a row replaces the table row with the same key; other rows are added. Null equals null."""
    delete_when: str | None = Field(default=None, examples=["op = 'D'"])
    """Spark SQL condition: a row that meets it deletes the table row with its key."""
    cdc: Cdc | None = None
    """Treat rows as changes of a source table: keep the table at its latest state, or with its history."""
    partition_by: KnownNames = ()
    """Partition columns of the table; used when the table is created."""
    merge_schema: bool = False
    """Add missing columns to the table."""
    properties: dict[str, str] = Field(default_factory=dict, examples=[{"delta.appendOnly": "true"}])
    """Table properties; used when the table is created."""
    maintain: bool = True
    """Merge small files, delete files of old versions, and shorten the log, every 50 versions of a table in a local
    folder."""

    _time_range: EventTimeRange | None = PrivateAttr(None)

    def writer(self, identity: SinkIdentity) -> Writer:
        """Create a writer that commits the batch id with the rows."""
        from millstream.connectors.delta.writer import DeltaWriter  # noqa: PLC0415 - checking needs no writer

        return DeltaWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:
        """Guarantee exactly-once in every mode."""
        action = {
            OutputMode.APPEND: "merges rows" if self.merge_on else "appends rows",
            OutputMode.UPDATE: "merges rows",
            OutputMode.COMPLETE: "replaces the table",
        }[mode]
        action += " and deletes others" if self.delete_when else ""
        if self.cdc:
            action = "merges changes by their sequence"
        on_s3 = self.path is not None and self.path.is_on_s3
        # Commits of this class and of Delta's own on S3 exclude each other only if both are conditional writes.
        shared = (
            "; on S3 every other writer of the table must create its commits on a condition too"
            if on_s3
            else ""
        )
        return (
            Guarantee.EXACTLY_ONCE,
            f"{action} and records the batch id in one commit of the Delta log{shared}",
        )

    def problems(self, mode: OutputMode) -> list[Problem]:
        """Check for missing or conflicting table and key settings and for columns named twice."""
        problems = []
        if self.path is None and self.table is None:
            problems.append(
                Problem("path", "delta needs a path or a table", "set the folder: delta: {path: lake/NAME}")
            )
        if self.path is not None and self.table is not None:
            problems.append(Problem("table", "delta has both 'path' and 'table'", "keep only one of them"))
        has_key, deletes = bool(self.row_key), self.delete_when is not None and not self.cdc
        problems += key_problems("delta", mode, has_key=has_key, deletes=deletes, merges=bool(self.merge_on))
        if self.cdc:
            problems += self.cdc.problems(mode, {"merge_on": self.merge_on, "delete_when": self.delete_when})
        for field, names in (("merge_on", self.merge_on), ("partition_by", self.partition_by)):
            twice = sorted({name for name in names if names.count(name) > 1})
            problems += [
                Problem(field, f"{field} names column '{name}' twice", "name it once") for name in twice
            ]
        return problems

    def weakening_problems(self, mode: OutputMode) -> list[Problem]:  # noqa: ARG002 - the same in all
        """Warn about a log that forgets written batches within days."""
        retention = next(
            (text for key, text in self.properties.items() if key.lower() == _RETENTION.lower()), None
        )
        days = None if retention is None else _parse_days(retention)
        if days is None or days >= LEAST_DAYS:
            return []
        return [
            Problem(
                "properties",
                f"the table deletes the ids of written batches after {retention}",
                f"remove {_RETENTION}, or set it to more time than the query may ever be stopped",
                "a batch that is replayed after this time is written a second time",
                _RETENTION,
            )
        ]

    def named_columns(self) -> Mapping[str, tuple[str, ...]]:
        """Return the key and partition columns."""
        columns = {"merge_on": self.merge_on, "partition_by": self.partition_by}
        return columns | dict(self.cdc.named_columns()) if self.cdc else columns

    def takes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return all columns except those that `cdc` leaves out."""
        return self.cdc.takes(names) if self.cdc else tuple(names)

    def table_columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns of a table created for these query columns."""
        return [*self.takes(names), *(self.cdc.history_columns if self.cdc else ())]

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """Check for types that Delta cannot store and partition columns that are not simple values."""
        problems = []
        for name, kind in columns.items():
            inside = set(type_names(kind))
            if inside & _UNKNOWN or ("void" in inside and kind != "void"):
                problems.append(
                    Problem(
                        None,
                        f"delta cannot store column '{name}' of type {kind}",
                        "cast the column in the view, or remove it from the view",
                    )
                )
        divides = {name.lower() for name in self.partition_by}
        problems += [
            Problem(
                "partition_by",
                f"the table cannot be partitioned by column '{name}' of type {kind}",
                "partition it by a simple column, such as a date",
            )
            for name, kind in columns.items()
            if name.lower() in divides and outer_type(kind) in _NO_FOLDERS
        ]
        if self.cdc:
            problems += self.cdc.refuses(columns)
        if self.row_key:
            problems += [
                Problem(
                    None,
                    f"column '{name}' contains a backtick, which Delta's MERGE cannot read",
                    "rename it in the view",
                )
                for name in columns
                if "`" in name
            ]
        return problems

    def conflict_cost(self, mode: OutputMode) -> str:
        """Describe merges that touch the same files: the later of two commits fails, and the writer repeats it."""
        if not self.row_key or mode is OutputMode.COMPLETE:
            return ""
        return (
            "on a local disk one merge waits for the other; on an object store Delta rejects a merge if "
            "another has changed the same files, and the merge is repeated up to five times; no row is lost "
            "or duplicated"
        )

    def small_batches(self, mode: OutputMode) -> str:
        """Describe the merge of few rows without Spark."""
        if not self.merge_on or mode is OutputMode.COMPLETE or self.path is None or self.path.local is None:
            return ""
        return (
            f"up to {SMALL_BATCH:,} rows are merged by delta-rs, if the table has at most {SMALL_TABLE >> 20} MiB "
            "and no feature that only Spark's writer honours"
        )

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns of `merge_on`, or the keys of `cdc`."""
        return self.cdc.row_key if self.cdc else tuple(self.merge_on)

    @property
    def routed_by(self) -> tuple[str, ...]:
        """The columns of `partition_by`, and the sequence column that orders changes."""
        return (*self.partition_by, self.cdc.sequence_by) if self.cdc else tuple(self.partition_by)

    @classmethod
    def of_spark(
        cls, columns: Mapping[str, str], options: Mapping[str, str], partition_columns: tuple[str, ...]
    ) -> list[Problem]:
        """Check as for this sink, because Delta refuses the same columns."""
        return cls(path=Location(options.get("path") or "-"), partition_by=partition_columns).refuses(columns)

    def in_sandbox(self, sandbox: Sandbox) -> Sink | None:
        """Use a sandbox table in a folder, also for a catalog table."""
        return self.model_copy(update={"path": sandbox.path(self.target()), "table": None})

    def read_all(self, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:  # noqa: ARG002
        """Read the table's rows; None before the table exists."""
        local = None if self.path is None else self.path.local
        if local is None or not (local / "_delta_log").is_dir():
            return None if local is None else spark.createDataFrame([], schema)
        return spark.read.format("delta").load(str(self.path)).selectExpr(*map(quote_name, schema.names))

    def read_time_range(
        self,
        spark: SparkSession,
        schema: StructType,
        mode: OutputMode,  # noqa: ARG002
        time_range: EventTimeRange,  # noqa: ARG002
    ) -> DataFrame | None:
        """Read the table's rows, also from storage that only Spark can read."""
        from millstream.connectors.delta.commit.log import read_table  # noqa: PLC0415 - as the writer

        return None if self.delete_when is not None else read_table(spark, self, schema)

    def stored_values(self, schema: StructType) -> dict[str, str]:
        """Convert an empty text in a partition column to NULL."""
        return empty_text_as_null(schema, self.partition_by)

    def outcome(self, rows: DataFrame) -> DataFrame | None:
        """Compute the table that results from the changes."""
        return self.cdc.outcome(rows) if self.cdc else None

    def backfill_conflict(self, mode: OutputMode) -> str:  # noqa: ARG002 - the same in all
        """Refuse a backfill of a table that is built from changes."""
        return "it is built from changes, not from rows" if self.cdc else ""

    def into(self, name: str) -> Sink | None:
        """Write to another folder, next to this one for a plain name, or to another catalog table."""
        if self.cdc:
            return None
        if self.path is None:
            return self.model_copy(update={"table": name})
        return self.model_copy(update={"path": self.path.beside(name)})

    def replacing_range(self, time_range: EventTimeRange) -> Sink | None:
        """Replace the range with Delta's `replaceWhere`; None for changes."""
        if self.cdc:
            return None
        copy = self.model_copy()
        copy._time_range = time_range  # noqa: SLF001 - a copy of this sink
        return copy

    @property
    def replaced(self) -> EventTimeRange | None:
        """The range that each batch of the writer replaces; None for an ordinary writer."""
        return self._time_range

    @property
    def orders_by_column(self) -> bool:
        """Whether the sequence of changes decides their order."""
        return self.cdc is not None

    @property
    def is_sole_writer(self) -> bool:
        """True for `cdc`: deletions are committed before the rows, and a second query may read between the two."""
        return self.cdc is not None

    @property
    def delete_condition(self) -> str | None:
        """The condition of `delete_when`."""
        return self.delete_when

    @property
    def delete_marker(self) -> tuple[str, str] | None:
        """The setting that marks deletions, and its condition over the query's columns."""
        if self.cdc and self.cdc.apply_as_deletes is not None:
            return "apply_as_deletes", self.cdc.is_deletion
        if self.delete_when is not None:
            return "delete_when", f"coalesce(CAST(({self.delete_when}) AS BOOLEAN), false)"
        return None

    @property
    def is_deletion(self) -> str:
        """The condition for a row that deletes another; null counts as false."""
        return self.delete_marker[1] if self.delete_marker else "false"

    @property
    def place(self) -> str:
        """The table's name in SQL."""
        if self.path is not None:
            return f"delta.{quote_name(str(self.path))}"
        return ".".join(quote_name(part) for part in (self.table or "").split("."))

    @property
    def deletions(self) -> DeltaSink:
        """Table for the deletions of `cdc`: in the table's folder, or next to a catalog table."""
        if self.path is not None:
            return DeltaSink(path=Location(f"{self.path.rstrip('/')}/{DELETIONS}"))
        return DeltaSink(table=f"{self.table}__deletions")

    def clear_command(self) -> str:
        """Delete the folder with its log, or drop the catalog table."""
        if self.path is None:
            drop_deletions = f"; DROP TABLE IF EXISTS {self.deletions.table}" if self.cdc else ""
            return f"DROP TABLE {self.table}{drop_deletions}"
        return f"rm -r {self.path}" if self.path.local is not None else f"delete the folder {self.path}"

    def target(self) -> str:
        """Return the path or the table name."""
        return str(self.path or self.table or "")

    def writes_to(self) -> frozenset[str]:
        """Return the table's folder, or its name in the catalog."""
        return frozenset({str(self.path or f"table {self.table}")})

    def datasets(self) -> tuple[LineageDataset, ...]:
        """Return the table's folder; a catalog table has no lineage name."""
        return (dataset_of_folder(str(self.path)),) if self.path else ()

    def ask(self, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterable[ConnectivityFinding]:
        """Find what makes the table reject the query's rows."""
        from millstream.connectors.delta.connectivity import check_sink  # noqa: PLC0415 - checking does not connect

        return check_sink(self, columns, mode)

    def probe(self) -> None:
        """Raise `NotReady` if the table's folder cannot be written."""
        from millstream.connectors.delta.folder_check import require_writable  # noqa: PLC0415 - checking does not connect

        if self.path is not None:
            require_writable(self.path)

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """Read the rows of the newest files without Spark; None for a catalog table."""
        from millstream.connectors.delta.latest_rows import read_latest_rows  # noqa: PLC0415 - loads deltalake

        return None if self.path is None else read_latest_rows(self.path, limit)


def _parse_days(text: str) -> float | None:
    """Parse a Delta interval such as `interval 2 weeks` into days; None if it cannot be parsed."""
    parts = re.findall(r"(\d+)\s*([a-z]+?)s?\b", text.lower())
    if not parts or any(unit not in _UNITS for _, unit in parts):
        return None
    return sum(int(number) * _UNITS[unit] for number, unit in parts)
