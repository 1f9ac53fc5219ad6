"""File sinks: folders of Parquet, ORC, JSON, CSV and text files that contain only whole batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from millstream.connectors.api.ddl import (
    NESTED,
    empty_text_as_null,
    options_argument,
    outer_type,
    parsed_values,
    quote_name,
    quote_text,
    type_names,
)
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.values.lineage_dataset import LineageDataset, dataset_of_folder
from millstream.connectors.api.values.problem import Problem
from millstream.connectors.files.system import FILES
from millstream.spark import internals
from millstream.spec.column_names import KnownNames
from millstream.spec.guarantee import Guarantee
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.values.connectivity import ConnectivityFinding
    from millstream.connectors.api.values.sandbox import Sandbox
    from millstream.connectors.api.writer import SinkIdentity, Writer

# Refused by Spark 4.2, each tested.
_NO_FOLDERS = frozenset({*NESTED, "variant", "void", "interval"})

_OPTION_FIELDS = {"path": "path", "compression": "compression"}


class FilesSink(Sink):
    """Base of the kinds that write a folder of files."""

    main = "path"
    system = FILES
    modes = frozenset({OutputMode.APPEND, OutputMode.UPDATE})

    form: ClassVar[str]
    """Spark's name of the file format."""
    codecs: ClassVar[tuple[str, ...]]
    """Compressions that Spark supports for this format."""
    unknown: ClassVar[frozenset[str]] = frozenset({"interval", "time"})
    """Spark types that the format cannot store, even nested in a column's type."""
    preset: ClassVar[dict[str, str]] = {}
    """Default options of Spark's writer, unless `options` overrides them."""
    reading: ClassVar[dict[str, str]] = {}
    """Options with which Spark's reader reads each row that was written, unless `options` overrides them."""

    path: Location = Field(examples=["lake/purchases"])
    """Folder for the files; created by the first batch."""
    partition_by: KnownNames = ()
    """Partition columns, with folders such as `day=2026-01-01`."""
    layout: Literal["moved", "by_batch"] = "moved"
    """`by_batch`: a folder `batch=…` per batch, which becomes visible as a whole; `moved`: files become visible one
    by one."""
    compression: str | None = Field(default=None, examples=["zstd"])
    """Compression of the files. Default: Spark's default for the format."""
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Further options of Spark's writer for this format, by their names in Spark."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """Create a writer that publishes a batch by moving whole files."""
        from millstream.connectors.files.writer import FilesWriter  # noqa: PLC0415 - checking needs no writer

        return FilesWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002 - the same in both
        """Guarantee exactly-once."""
        if self.layout == "by_batch":
            return (
                Guarantee.EXACTLY_ONCE,
                "a batch's files are staged, and one rename of their folder commits and publishes them",
            )
        return (
            Guarantee.EXACTLY_ONCE,
            "a batch's files are staged, listed in a manifest that commits them, and then moved into place, "
            "each whole and with a unique name; a concurrent reader may see only some of them",
        )

    def problems(self, mode: OutputMode) -> list[Problem]:
        """Check compression, options, duplicate columns, and the layout for the output mode."""
        problems = [
            Problem(
                "options", f"option '{key}' has its own setting", f"write it as {_OPTION_FIELDS[key.lower()]}"
            )
            for key in self.options
            if key.lower() in _OPTION_FIELDS
        ]
        if self.compression is not None and self.compression.lower() not in self.codecs:
            problems.append(
                Problem(
                    "compression",
                    f"{self.kind} does not support compression '{self.compression}'",
                    f"choose among {', '.join(self.codecs)}",
                )
            )
        if mode is OutputMode.UPDATE and self.layout != "by_batch":
            problems.append(
                Problem(
                    "layout" if "layout" in self.model_fields_set else None,
                    f"{self.kind} in update mode needs a folder per batch",
                    "add layout: by_batch",
                    "a row is written again whenever it changes; readers use the row of the last batch, and "
                    "must be able to find it",
                )
            )
        twice = sorted({name for name in self.partition_by if self.partition_by.count(name) > 1})
        problems += [
            Problem("partition_by", f"partition_by names column '{name}' twice", "name it once")
            for name in twice
        ]
        return problems

    def named_columns(self) -> Mapping[str, tuple[str, ...]]:
        """Return the partition columns."""
        return {"partition_by": self.partition_by}

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """Check for types that the format or a partition cannot store, and that a column is left for the files."""
        problems = [
            Problem(
                "partition_by",
                f"files cannot be partitioned by column '{name}' of type {columns[name]}",
                "partition them by a simple column, such as a date",
            )
            for name in self.partition_by
            if name in columns and outer_type(columns[name]) in _NO_FOLDERS
        ]
        if self.layout == "by_batch":
            problems += [
                Problem(
                    "layout",
                    f"column '{name}' has the name that readers derive from the batch folders",
                    "rename it in the view",
                )
                for name in columns
                if name.lower() == "batch"
            ]
        rest = {name: kind for name, kind in columns.items() if name not in self.partition_by}
        if not rest:
            problems.append(
                Problem(
                    "partition_by",
                    "every column is a partition column, and none is left for the files",
                    "remove a column from partition_by",
                )
            )
        problems += [
            Problem(
                None,
                f"{self.kind} cannot store column '{name}' of type {kind}",
                _suggest_flattening(name, kind)
                if self.unknown >= {"struct"}
                else "cast the column in the view, or remove it from the view",
            )
            for name, kind in rest.items()
            if set(type_names(kind)) & self.unknown
        ]
        return problems

    def ask(self, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterable[ConnectivityFinding]:  # noqa: ARG002 - the same in all
        """Find problems with the folder."""
        from millstream.connectors.files.connectivity import check_sink  # noqa: PLC0415 - checking does not connect

        return check_sink(self)

    @classmethod
    def of_spark(
        cls, columns: Mapping[str, str], options: Mapping[str, str], partition_columns: tuple[str, ...]
    ) -> list[Problem]:
        """Check as for this sink, because Spark writes the files in both cases."""
        return cls(path=Location(options.get("path") or "-"), partition_by=partition_columns).refuses(columns)

    def probe(self) -> None:
        """Raise `NotReady` if the folder cannot be written."""
        from millstream.connectors.files.sink_folder import require_writable  # noqa: PLC0415 - checking does not connect

        require_writable(self.path)

    def writes_to(self) -> frozenset[str]:
        """Return the folder."""
        return frozenset({str(self.path)})

    def datasets(self) -> tuple[LineageDataset, ...]:
        """Return the folder."""
        return (dataset_of_folder(str(self.path)),)

    @property
    def routed_by(self) -> tuple[str, ...]:
        """The columns of `partition_by`."""
        return tuple(self.partition_by)

    def in_sandbox(self, sandbox: Sandbox) -> Sink | None:
        """Use a sandbox folder."""
        return self.model_copy(update={"path": sandbox.path(str(self.path))})

    def read_all(self, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:
        """Read all files as any reader of the folder would; None except in append mode."""
        local = self.path.local
        if local is None or mode is not OutputMode.APPEND:
            return None
        if not local.is_dir():
            return spark.createDataFrame([], schema)
        # Batch folders add a column.
        return self._load(spark, schema).selectExpr(*map(quote_name, schema.fieldNames()))

    def versions(self, spark: SparkSession, schema: StructType) -> DataFrame | None:
        """Read the rows of every batch, if each has its own folder."""
        local = self.path.local
        if local is None or self.layout != "by_batch":
            return None
        if not local.is_dir():
            return spark.createDataFrame([], schema).selectExpr("*", "'' AS batch")
        return self._load(spark, schema)

    def _load(self, spark: SparkSession, schema: StructType) -> DataFrame:
        """Read the files as any reader of the folder would."""
        options = self.reader_options | internals.PLAIN_PATHS
        return spark.read.format(self.form).schema(schema).options(**options).load(str(self.path))

    @property
    def writer_options(self) -> dict[str, str]:
        """The options of Spark's writer."""
        return self.preset | self._text_options

    @property
    def reader_options(self) -> dict[str, str]:
        """The options of Spark's reader."""
        return self.reading | self._text_options

    @property
    def _text_options(self) -> dict[str, str]:
        return {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in self.options.items()
        }

    def stored_values(self, schema: StructType) -> dict[str, str]:
        """Convert to the format and back; in the name of a folder, an empty text is NULL."""
        body = type(schema)([field for field in schema.fields if field.name not in self.partition_by])
        return self._stored_in_files(body) | empty_text_as_null(schema, self.partition_by)

    def _stored_in_files(self, body: StructType) -> dict[str, str]:
        """Convert to JSON or CSV and back: by default, times have milliseconds. Other formats store what they get."""
        if self.form not in ("json", "csv"):
            return {}
        columns = ", ".join(map(quote_name, body.fieldNames()))
        text = f"to_{self.form}(struct({columns}){options_argument(self.writer_options)})"
        return parsed_values(self.form, text, body, self.reader_options)

    def into(self, name: str) -> Sink | None:
        """Write to another folder: a path as in the spec, next to this one for a plain name."""
        return self.model_copy(update={"path": self.path.beside(name)})

    def backfill_conflict(self, mode: OutputMode) -> str:
        """Refuse a backfill in update mode, where the last batch of a key counts."""
        return (
            "its readers use the row of a key's last batch, and could not tell which batch is the last"
            if mode is not OutputMode.APPEND
            else ""
        )

    def is_rerun_idempotent(self, mode: OutputMode) -> bool:  # noqa: ARG002 - the same in both
        """Return False: nothing is replaced, and a new checkpoint numbers its batches from 0."""
        return False

    def adoption_conflict(self, mode: OutputMode) -> str:
        """Refuse in update mode, where readers use the row with the greatest batch id."""
        return (
            "readers find a row's last batch by its number, and another checkpoint starts at 0 again"
            if mode is OutputMode.UPDATE
            else ""
        )

    def clear_command(self) -> str:
        """Delete the folder with its ledger."""
        return f"rm -r {self.path}" if self.path.local is not None else f"delete the folder {self.path}"

    def target(self) -> str:
        """Return the path."""
        return str(self.path)

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """Read the rows of the newest files without Spark; None for a remote folder."""
        from millstream.connectors.files.latest_rows import read_latest_rows  # noqa: PLC0415 - loads pyarrow

        return read_latest_rows(self, limit)


_TEXT_CODECS = ("none", "uncompressed", "bzip2", "deflate", "gzip", "lz4", "snappy", "zstd")


class ParquetSink(FilesSink):
    """A folder of Parquet files."""

    kind = "parquet"
    form = "parquet"
    accepts_rows = True
    codecs = ("none", "uncompressed", "snappy", "gzip", "lz4", "lz4_raw", "brotli", "zstd")


class OrcSink(FilesSink):
    """A folder of ORC files."""

    kind = "orc"
    form = "orc"
    unknown = frozenset({"interval", "time", "void", "variant"})
    codecs = ("none", "uncompressed", "snappy", "zlib", "lzo", "lz4", "zstd", "brotli")


class JsonSink(FilesSink):
    """A folder of JSON files, one object per line."""

    kind = "json"
    form = "json"
    codecs = _TEXT_CODECS


class CsvSink(FilesSink):
    """A folder of CSV files."""

    kind = "csv"
    form = "csv"
    unknown = frozenset({"interval", "time", "void", "variant", *NESTED})
    codecs = _TEXT_CODECS
    # By default, Spark's CSV writer trims every text.
    preset = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
    # Texts with line breaks are in quotes. By default, Spark's reader takes each line for a row.
    reading = {"multiLine": "true", "lineSep": "\n"}


class TextSink(FilesSink):
    """A folder of text files with a row per line; rows have one text column besides those of `partition_by`."""

    kind = "text"
    form = "text"
    codecs = _TEXT_CODECS

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """Accept only one text column besides the partition columns."""
        rest = {name: kind for name, kind in columns.items() if name not in self.partition_by}
        if [outer_type(kind) for kind in rest.values()] in (["string"], ["char"], ["varchar"]):
            return []
        remaining = ", ".join(f"{name} {kind}" for name, kind in rest.items())
        return [
            Problem(
                None,
                f"text needs one text column, and the query has {len(rest)}: {remaining}"
                if len(rest) != 1
                else f"text needs one text column, and the query has {remaining}",
                "select one column of type STRING, such as to_json(struct(*)) AS value",
            )
        ]

    def _stored_in_files(self, body: StructType) -> dict[str, str]:
        """Take the first line of a text, because its other lines are read as further rows, and '' for NULL."""
        ends = [value for key, value in self.writer_options.items() if key.lower() == "linesep"]
        (name,) = body.fieldNames()
        line = quote_name(name)
        for end in ends or ["\n", "\r"]:
            line = f"substring_index({line}, {quote_text(end)}, 1)"
        return {name: f"coalesce({line}, '')"}


def _suggest_flattening(name: str, kind: str) -> str:
    """Suggest how to write a column with nested values in a flat format."""
    if outer_type(kind) != "struct":
        return (
            f"write it as one text: to_json({name}) AS {name}"
            if outer_type(kind) in NESTED
            else "cast it in the view"
        )
    first = kind.partition("<")[2].partition(":")[0]
    return f"select its fields one by one, such as {name}.{first}"
