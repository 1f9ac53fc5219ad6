"""The Delta sink: appends, merges by key or overwrites, and knows which batches a table holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field, PrivateAttr

from millstream.connectors.cdc import Cdc
from millstream.connectors.cut import Cut
from millstream.connectors.dataset import Dataset, of_place
from millstream.connectors.ddl import NESTED, outer, quoted, within
from millstream.connectors.delta.place import DELETIONS
from millstream.connectors.sink import Sink, SinkIdentity, Writer
from millstream.connectors.source import Problem
from millstream.spec.guarantee import Guarantee
from millstream.spec.location import Location
from millstream.spec.mode import OutputMode
from millstream.spec.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.asking import Remark
    from millstream.connectors.elsewhere import Place

# As Delta 4.4 on Spark 4.2 refuses them, tried one by one.
_UNKNOWN = frozenset({"interval", "span", "time"})
_NO_FOLDERS = frozenset({*NESTED, "variant", "void"})

_RETENTION = "delta.setTransactionRetentionDuration"
# Nobody mends what stands still over a weekend in less.
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
    main = "path"
    modes = frozenset(OutputMode)
    case_counts = False

    path: Location | None = Field(default=None, examples=["lake/funnel"])
    """The table's folder; made with the first batch."""
    table: str | None = Field(default=None, examples=["sales.funnel"])
    """The table's name in Spark's catalog, instead of a path."""
    merge_on: Names = ()
    """Key columns: a row whose key is in the table replaces that row, others are added. Null equals null."""
    delete_when: str | None = Field(default=None, examples=["op = 'D'"])
    """A condition in Spark's SQL: a row for which it holds removes the row of its key instead."""
    cdc: Cdc | None = None
    """Rows are changes of a source table: the table is kept at its latest state, or with its history."""
    partition_by: Names = ()
    """Columns that divide the table into folders; used when the table is made."""
    merge_schema: bool = False
    """Add columns to the table that it lacks."""
    properties: dict[str, str] = Field(default_factory=dict, examples=[{"delta.appendOnly": "true"}])
    """Table properties; used when the table is made."""

    _cut: Cut | None = PrivateAttr(None)

    def writer(self, identity: SinkIdentity) -> Writer:
        """A writer that commits the batch number with the rows."""
        from millstream.connectors.delta.writer import DeltaWriter  # noqa: PLC0415 - checking needs no writer

        return DeltaWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:
        """Exactly-once in every mode."""
        done = {
            OutputMode.APPEND: "merges rows" if self.merge_on else "appends rows",
            OutputMode.UPDATE: "merges rows",
            OutputMode.COMPLETE: "replaces the table",
        }[mode]
        done += " and removes others" if self.delete_when else ""
        if self.cdc:
            done = "merges changes by their sequence"
        return Guarantee.EXACTLY_ONCE, f"{done} and records the batch number in one commit of the Delta log"

    def problems(self, mode: OutputMode) -> list[Problem]:
        """A missing or doubled place, a missing key, keys that name a column twice."""
        found = []
        if self.path is None and self.table is None:
            found.append(
                Problem("path", "delta needs a path or a table", "give the folder: delta: {path: lake/NAME}")
            )
        if self.path is not None and self.table is not None:
            found.append(Problem("table", "delta has both a path and a table", "keep one of them"))
        if mode is OutputMode.UPDATE and not self.row_key:
            found.append(
                Problem(
                    None,
                    "delta in update mode needs to know the key of a row",
                    "add merge_on with the columns that tell one row from another",
                    "a key comes again whenever its row changes; appending would keep every version",
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
        if self.cdc:
            found += self.cdc.problems(mode, {"merge_on": self.merge_on, "delete_when": self.delete_when})
        for field, names in (("merge_on", self.merge_on), ("partition_by", self.partition_by)):
            twice = sorted({name for name in names if names.count(name) > 1})
            found += [
                Problem(field, f"{field} names column '{name}' twice", "name it once") for name in twice
            ]
        return found

    def cautions(self, mode: OutputMode) -> list[Problem]:  # noqa: ARG002 - the same in all
        """A log that forgets written batches within days."""
        kept = next(
            (text for key, text in self.properties.items() if key.lower() == _RETENTION.lower()), None
        )
        days = None if kept is None else _days(kept)
        if days is None or days >= LEAST_DAYS:
            return []
        return [
            Problem(
                "properties",
                f"the table forgets after {kept} which batches it has",
                f"leave {_RETENTION} out, or give it more days than the longest time the query may stand still",
                "a batch that comes again after that is written again",
                _RETENTION,
            )
        ]

    def named(self) -> Mapping[str, tuple[str, ...]]:
        """The key and the columns that divide the table."""
        told = {"merge_on": self.merge_on, "partition_by": self.partition_by}
        return told | dict(self.cdc.named()) if self.cdc else told

    def takes(self, names: Sequence[str]) -> tuple[str, ...]:
        """All, but for those that `cdc` leaves out."""
        return self.cdc.takes(names) if self.cdc else tuple(names)

    def held_columns(self, names: Sequence[str]) -> list[str]:
        """The columns of the table that is made for these of a query."""
        return [*self.takes(names), *(self.cdc.own if self.cdc else ())]

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """Types that Delta has not, and folders by what is no plain value."""
        found = []
        for name, kind in columns.items():
            inside = set(within(kind))
            if inside & _UNKNOWN or ("void" in inside and kind != "void"):
                found.append(
                    Problem(
                        None,
                        f"delta cannot store column '{name}' of type {kind}",
                        "cast it in the view, or leave it out",
                    )
                )
        divides = {name.lower() for name in self.partition_by}
        found += [
            Problem(
                "partition_by",
                f"a table cannot be divided by column '{name}' of type {kind}",
                "divide it by a plain column, such as a date",
            )
            for name, kind in columns.items()
            if name.lower() in divides and outer(kind) in _NO_FOLDERS
        ]
        if self.cdc:
            found += self.cdc.refuses(columns)
        if self.row_key:
            found += [
                Problem(
                    None,
                    f"column '{name}' has a backtick, which Delta's MERGE cannot read",
                    "rename it in the view",
                )
                for name in columns
                if "`" in name
            ]
        return found

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns of `merge_on`, or of `cdc`."""
        return self.cdc.row_key if self.cdc else tuple(self.merge_on)

    @property
    def routed_by(self) -> tuple[str, ...]:
        """The columns of `partition_by`, and the one that tells which change is newer."""
        return (*self.partition_by, self.cdc.sequence_by) if self.cdc else tuple(self.partition_by)

    @classmethod
    def of_spark(
        cls, columns: Mapping[str, str], options: Mapping[str, str], divided: tuple[str, ...]
    ) -> list[Problem]:
        """The same as here: Delta refuses in both cases."""
        return cls(path=Location(options.get("path") or "-"), partition_by=divided).refuses(columns)

    def elsewhere(self, place: Place) -> Sink | None:
        """A table in a folder of its own, whether the path or the catalog named it."""
        return self.model_copy(update={"path": place.path(self.target()), "table": None})

    def whole(self, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:  # noqa: ARG002
        """The table's rows; none before it is made."""
        local = None if self.path is None else self.path.local
        if local is None or not (local / "_delta_log").is_dir():
            return None if local is None else spark.createDataFrame([], schema)
        return spark.read.format("delta").load(str(self.path)).select(*schema.names)

    def held(self, spark: SparkSession, schema: StructType, mode: OutputMode, cut: Cut) -> DataFrame | None:  # noqa: ARG002
        """The table's rows, wherever it lies."""
        from millstream.connectors.delta.log import everything  # noqa: PLC0415 - as the writer

        return None if self.delete_when is not None else everything(spark, self, schema)

    def outcome(self, rows: DataFrame) -> DataFrame | None:
        """What follows from the changes."""
        return self.cdc.outcome(rows) if self.cdc else None

    def apart(self, mode: OutputMode) -> str:  # noqa: ARG002 - the same in all
        """Rows of a table that follows from changes are no changes."""
        return "it follows from changes, and is not written by rows" if self.cdc else ""

    def into(self, name: str) -> Sink | None:
        """Another folder, beside this one where the name is a mere name; or another table of the catalog."""
        if self.cdc:
            return None
        if self.path is None:
            return self.model_copy(update={"table": name})
        return self.model_copy(update={"path": self.path.beside(name)})

    def replacing(self, cut: Cut) -> Sink | None:
        """With Delta's `replaceWhere`; None of changes."""
        if self.cdc:
            return None
        made = self.model_copy()
        made._cut = cut  # noqa: SLF001 - a copy of this sink
        return made

    @property
    def replaced(self) -> Cut | None:
        """The rows in whose place its writer puts a batch; None for any other writer."""
        return self._cut

    @property
    def reorders(self) -> bool:
        """Changes are put in order by their sequence."""
        return self.cdc is not None

    @property
    def sole(self) -> bool:
        """Deletions are kept in a commit before that of the rows: a second query may read between the two."""
        return self.cdc is not None

    @property
    def removes(self) -> str | None:
        """The condition of `delete_when`."""
        return self.delete_when

    @property
    def marks(self) -> tuple[str, str] | None:
        """The setting that tells which rows delete, and its condition over the query's columns."""
        if self.cdc and self.cdc.apply_as_deletes is not None:
            return "apply_as_deletes", self.cdc.gone
        if self.delete_when is not None:
            return "delete_when", f"coalesce(CAST(({self.delete_when}) AS BOOLEAN), false)"
        return None

    @property
    def place(self) -> str:
        """The table as SQL names it."""
        if self.path is not None:
            return f"delta.{quoted(str(self.path))}"
        return ".".join(quoted(part) for part in (self.table or "").split("."))

    @property
    def deletions(self) -> DeltaSink:
        """Where `cdc` keeps deletions: in the table's own folder, or in a table beside one of the catalog."""
        if self.path is not None:
            return DeltaSink(path=Location(f"{self.path.rstrip('/')}/{DELETIONS}"))
        return DeltaSink(table=f"{self.table}__deletions")

    def clearing(self) -> str:
        """Its folder goes, with its log; a table of the catalog is dropped."""
        if self.path is None:
            beside = f"; DROP TABLE IF EXISTS {self.deletions.table}" if self.cdc else ""
            return f"DROP TABLE {self.table}{beside}"
        return f"rm -r {self.path}" if self.path.local is not None else f"delete the folder {self.path}"

    def target(self) -> str:
        """The path or the table's name."""
        return str(self.path or self.table or "")

    def writes_to(self) -> frozenset[str]:
        """The table's folder, or its name in the catalog."""
        return frozenset({str(self.path or f"table {self.table}")})

    def datasets(self) -> tuple[Dataset, ...]:
        """The table's folder; one of the catalog has no name that others know."""
        return (of_place(str(self.path)),) if self.path else ()

    def ask(self, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterable[Remark]:
        """What the table will refuse."""
        from millstream.connectors.delta.ask import of_sink  # noqa: PLC0415 - checking asks nobody

        return of_sink(self, columns, mode)

    def probe(self) -> None:
        """Raises `NotReady` when the table's folder cannot be written."""
        from millstream.connectors.delta.place import writable  # noqa: PLC0415 - checking asks nobody

        if self.path is not None:
            writable(self.path)

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """The rows of the newest files, without Spark; None for a table that is known to a catalog only."""
        from millstream.connectors.delta.look import latest  # noqa: PLC0415 - loads deltalake

        return None if self.path is None else latest(self.path, limit)


def _days(text: str) -> float | None:
    """The days of an interval as Delta reads it, `interval 2 weeks`; None for one that is not understood."""
    found = re.findall(r"(\d+)\s*([a-z]+?)s?\b", text.lower())
    if not found or any(unit not in _UNITS for _, unit in found):
        return None
    return sum(int(number) * _UNITS[unit] for number, unit in found)
