"""The sinks of files: folders of Parquet, ORC, JSON, CSV and text files that hold whole batches only."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from millstream.connectors.dataset import Dataset, of_place
from millstream.connectors.ddl import NESTED, outer, within
from millstream.connectors.sink import Sink, SinkIdentity, Writer
from millstream.connectors.source import Problem
from millstream.spec.guarantee import Guarantee
from millstream.spec.location import Location
from millstream.spec.mode import OutputMode
from millstream.spec.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.asking import Remark
    from millstream.connectors.elsewhere import Place

# As Spark 4.2 refuses them, tried one by one.
_NO_FOLDERS = frozenset({*NESTED, "variant", "void", "interval"})

_OURS = {"path": "path", "compression": "compression"}


class FilesSink(Sink):
    """Base of the kinds that write a folder of files."""

    main = "path"
    modes = frozenset({OutputMode.APPEND, OutputMode.UPDATE})

    form: ClassVar[str]
    """Spark's name of the file format."""
    codecs: ClassVar[tuple[str, ...]]
    """Compressions that Spark has for this format."""
    unknown: ClassVar[frozenset[str]] = frozenset({"interval", "time"})
    """Spark's types that it does not write in this format, wherever they stand in a column's type."""
    preset: ClassVar[dict[str, str]] = {}
    """Spark's writer options that hold unless `options` says otherwise."""

    path: Location = Field(examples=["lake/purchases"])
    """The folder; made with the first batch."""
    partition_by: Names = ()
    """Columns that divide the files into folders such as `day=2026-01-01`."""
    layout: Literal["moved", "by_batch"] = "moved"
    """`by_batch`: a folder `batch=…` for each batch, seen whole or not at all; `moved`: files one by one."""
    compression: str | None = Field(default=None, examples=["zstd"])
    """How files are compressed; Spark's default for the format unless given."""
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Further options of Spark's writer of this format, by Spark's names."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """A writer that publishes a batch by moving whole files."""
        from millstream.connectors.files.writer import FilesWriter  # noqa: PLC0415 - checking needs no writer

        return FilesWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002 - the same in both
        """Exactly-once."""
        if self.layout == "by_batch":
            return (
                Guarantee.EXACTLY_ONCE,
                "a batch's files are written aside, and one rename of their folder commits and shows them",
            )
        return (
            Guarantee.EXACTLY_ONCE,
            "a batch's files are written aside, listed in a manifest that commits them, and then moved into "
            "place, each whole and under a name of its own; a reader in the middle of that sees some of them",
        )

    def problems(self, mode: OutputMode) -> list[Problem]:
        """A compression that the format lacks, options that have a field, columns named twice, a layout."""
        found = [
            Problem("options", f"option '{key}' has a field of its own", f"write it as {_OURS[key.lower()]}")
            for key in self.options
            if key.lower() in _OURS
        ]
        if self.compression is not None and self.compression.lower() not in self.codecs:
            found.append(
                Problem(
                    "compression",
                    f"{self.kind} has no compression '{self.compression}'",
                    f"choose among {', '.join(self.codecs)}",
                )
            )
        if mode is OutputMode.UPDATE and self.layout != "by_batch":
            found.append(
                Problem(
                    "layout" if "layout" in self.model_fields_set else None,
                    f"{self.kind} in update mode needs a folder for each batch",
                    "add layout: by_batch",
                    "a row comes again whenever it changes; its reader takes the one of the last batch, and "
                    "must be able to tell which that is",
                )
            )
        twice = sorted({name for name in self.partition_by if self.partition_by.count(name) > 1})
        found += [
            Problem("partition_by", f"partition_by names column '{name}' twice", "name it once")
            for name in twice
        ]
        return found

    def named(self) -> Mapping[str, tuple[str, ...]]:
        """The columns that divide the files."""
        return {"partition_by": self.partition_by}

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """Types that the format has not, folders by what is no plain value, no column left for the files."""
        found = [
            Problem(
                "partition_by",
                f"files cannot be divided by column '{name}' of type {columns[name]}",
                "divide them by a plain column, such as a date",
            )
            for name in self.partition_by
            if name in columns and outer(columns[name]) in _NO_FOLDERS
        ]
        if self.layout == "by_batch":
            found += [
                Problem(
                    "layout",
                    f"column '{name}' has the name that readers give to the folders of batches",
                    "rename it in the view",
                )
                for name in columns
                if name.lower() == "batch"
            ]
        rest = {name: kind for name, kind in columns.items() if name not in self.partition_by}
        if not rest:
            found.append(
                Problem(
                    "partition_by",
                    "the files are divided by every column, and none is left for them",
                    "take a column out of partition_by",
                )
            )
        found += [
            Problem(
                None,
                f"{self.kind} cannot store column '{name}' of type {kind}",
                _apart(name, kind) if self.unknown >= {"struct"} else "cast it in the view, or leave it out",
            )
            for name, kind in rest.items()
            if set(within(kind)) & self.unknown
        ]
        return found

    def ask(self, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterable[Remark]:  # noqa: ARG002 - the same in all
        """What stands in the way of the folder."""
        from millstream.connectors.files.ask import of_sink  # noqa: PLC0415 - checking asks nobody

        return of_sink(self)

    @classmethod
    def of_spark(
        cls, columns: Mapping[str, str], options: Mapping[str, str], divided: tuple[str, ...]
    ) -> list[Problem]:
        """The same as here: Spark writes the files in both cases."""
        return cls(path=Location(options.get("path") or "-"), partition_by=divided).refuses(columns)

    def probe(self) -> None:
        """Raises `NotReady` when the folder cannot be written."""
        from millstream.connectors.files.place import writable  # noqa: PLC0415 - checking asks nobody

        writable(self.path)

    def writes_to(self) -> frozenset[str]:
        """The folder."""
        return frozenset({str(self.path)})

    def datasets(self) -> tuple[Dataset, ...]:
        """The folder."""
        return (of_place(str(self.path)),)

    @property
    def routed_by(self) -> tuple[str, ...]:
        """The columns of `partition_by`."""
        return tuple(self.partition_by)

    def elsewhere(self, place: Place) -> Sink | None:
        """A folder of its own."""
        return self.model_copy(update={"path": place.path(str(self.path))})

    def whole(self, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:
        """The rows of all files, as a reader sees them who knows only the folder; None but in append mode."""
        local = self.path.local
        if local is None or mode is not OutputMode.APPEND:
            return None
        if not local.is_dir():
            return spark.createDataFrame([], schema)
        # Folders of batches give a column more.
        return self._opened(spark, schema).select(*(f"`{name}`" for name in schema.fieldNames()))

    def versions(self, spark: SparkSession, schema: StructType) -> DataFrame | None:
        """The rows of every batch, where each has a folder of its own."""
        local = self.path.local
        if local is None or self.layout != "by_batch":
            return None
        if not local.is_dir():
            return spark.createDataFrame([], schema).selectExpr("*", "'' AS batch")
        return self._opened(spark, schema)

    def _opened(self, spark: SparkSession, schema: StructType) -> DataFrame:
        """The files as a reader sees them who knows only the folder."""
        options = {key: str(value) for key, value in self.options.items()}
        return spark.read.format(self.form).schema(schema).options(**options).load(str(self.path))

    def into(self, name: str) -> Sink | None:
        """Another folder: a path as the spec has it, beside this one where it is a mere name."""
        return self.model_copy(update={"path": self.path.beside(name)})

    def apart(self, mode: OutputMode) -> str:
        """In update mode the last batch of a key counts."""
        return (
            "its readers take the row of a key's last batch, and which one that is would not be told"
            if mode is not OutputMode.APPEND
            else ""
        )

    def converges(self, mode: OutputMode) -> bool:  # noqa: ARG002 - the same in both
        """Never: nothing is replaced, and in update mode another checkpoint's batches count from 0 again."""
        return False

    def kept_apart(self, mode: OutputMode) -> str:
        """In update mode readers take the row of the greatest number."""
        return (
            "a reader takes a row's last batch by its number, and another checkpoint counts from 0 again"
            if mode is OutputMode.UPDATE
            else ""
        )

    def clearing(self) -> str:
        """Its folder goes, with what is remembered there."""
        return f"rm -r {self.path}" if self.path.local is not None else f"delete the folder {self.path}"

    def target(self) -> str:
        """The path."""
        return str(self.path)

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """The rows of the newest files, without Spark; None for a place that is not on this machine."""
        from millstream.connectors.files.look import latest  # noqa: PLC0415 - loads pyarrow

        return latest(self, limit)


_TEXT_CODECS = ("none", "uncompressed", "bzip2", "deflate", "gzip", "lz4", "snappy", "zstd")


class ParquetSink(FilesSink):
    """A folder of Parquet files."""

    kind = "parquet"
    form = "parquet"
    codecs = ("none", "uncompressed", "snappy", "gzip", "lz4", "lz4_raw", "brotli", "zstd")


class OrcSink(FilesSink):
    """A folder of ORC files."""

    kind = "orc"
    form = "orc"
    unknown = frozenset({"interval", "time", "void", "variant"})
    codecs = ("none", "uncompressed", "snappy", "zlib", "lzo", "lz4", "zstd", "brotli")


class JsonSink(FilesSink):
    """A folder of JSON files, one object a line."""

    kind = "json"
    form = "json"
    codecs = _TEXT_CODECS


class CsvSink(FilesSink):
    """A folder of CSV files."""

    kind = "csv"
    form = "csv"
    unknown = frozenset({"interval", "time", "void", "variant", *NESTED})
    codecs = _TEXT_CODECS
    # Spark's CSV writer strips the blanks around every text unless told not to.
    preset = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}


class TextSink(FilesSink):
    """A folder of text files, a line a row; rows have one text column beside those of `partition_by`."""

    kind = "text"
    form = "text"
    codecs = _TEXT_CODECS

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """Anything but one column of text beside those that divide the files."""
        rest = {name: kind for name, kind in columns.items() if name not in self.partition_by}
        if [outer(kind) for kind in rest.values()] in (["string"], ["char"], ["varchar"]):
            return []
        come = ", ".join(f"{name} {kind}" for name, kind in rest.items())
        return [
            Problem(
                None,
                f"text takes one text column, and {len(rest)} come: {come}"
                if len(rest) != 1
                else f"text takes one text column, and {come} comes",
                "select one column of type STRING, such as to_json(struct(*)) AS value",
            )
        ]


def _apart(name: str, kind: str) -> str:
    """The cure for a column of several values in a format of single ones."""
    if outer(kind) != "struct":
        return (
            f"write it as one text: to_json({name}) AS {name}"
            if outer(kind) in NESTED
            else "cast it in the view"
        )
    first = kind.partition("<")[2].partition(":")[0]
    return f"select its fields one by one, such as {name}.{first}"
