"""Write batches as files: Spark stages them, then the layout commits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.connectors.failpoints import hit_failpoint
from millstream.connectors.files import publish
from millstream.connectors.files.arrow_files import ParquetFiles, count_rows
from millstream.connectors.files.layouts import COLUMN, ByBatch, FileLayout, RenamedFiles
from millstream.connectors.files.sink_folder import LocalPlace, SinkFolder, open_folder, require_writable
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.batch_ledger import LedgerEntry
    from millstream.connectors.files.sink import FilesSink
    from millstream.connectors.files.sink_folder import FileEntry


class FilesWriter(Writer):
    """Delivers the batches of one query to one folder, each once."""

    has_checksums = True
    has_ledger = True

    def __init__(self, sink: FilesSink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self.sink = sink
        self._place: SinkFolder | None = None
        self._layout: FileLayout | None = None
        self._parquet: ParquetFiles | None = None

    @property
    def place(self) -> SinkFolder:
        """The folder, after `open`."""
        assert self._place is not None, "open was not called"
        return self._place

    @property
    def layout(self) -> FileLayout:
        """The layout of the batches, after `open`."""
        assert self._layout is not None, "open was not called"
        return self._layout

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Finish moving what an earlier run committed.

        Raises `NotReady` if the folder cannot be written, contains the log of Spark's own file sink, or `schema` does
        not fit the format.
        """
        require_writable(self.sink.path)
        self._require_columns(schema)
        self._place = open_folder(spark, self.sink.path)
        if self.place.exists("_spark_metadata"):
            raise NotReady(
                f"'{self.sink.path}' was written by Spark's own file sink, and readers see only the files in "
                "its _spark_metadata",
                "write to another folder, or delete _spark_metadata from this one",
            )
        self._layout = self._create_layout(spark)
        self._layout.open()
        if isinstance(self._place, LocalPlace):
            self._parquet = ParquetFiles.of(self.sink, spark, schema)

    def last_committed_batches(self, spark: SparkSession) -> tuple[LedgerEntry, ...]:
        """Return the entries of this query in manifests or batch folders."""
        return self._create_layout(spark).entries()

    def entry(self, batch_id: int) -> LedgerEntry | None:
        """Return the entry of one batch."""
        return self.layout.entry(batch_id)

    def _create_layout(self, spark: SparkSession) -> FileLayout:
        kind = ByBatch if self.sink.layout == "by_batch" else RenamedFiles
        return kind(open_folder(spark, self.sink.path), self.identity)

    def has_batch(self, batch_id: int) -> bool:
        """Return whether the batch is committed and all its files are in place."""
        return self.layout.has_batch(batch_id)

    @property
    def accepts_rows(self) -> bool:
        """Whether Arrow writes the same files as Spark."""
        return self._parquet is not None

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Write one batch. A committed batch is not written again; only its missing moves are made."""
        return self._write(lambda home: self._stage(frame, home), batch_id)

    def write_rows(self, rows: pa.Table, batch_id: int) -> WriteResult:
        """Write one batch whose rows are in the driver's memory, as `write` does."""
        place, parquet = self.place, self._parquet
        assert isinstance(place, LocalPlace), "write_rows was called without accepts_rows"
        assert parquet is not None, "write_rows was called without accepts_rows"
        return self._write(lambda home: parquet.write(rows, place.root / home), batch_id)

    def _write(self, stage: Callable[[str], None], batch_id: int) -> WriteResult:
        if self.layout.finish(batch_id):
            return WriteResult(is_skipped=True)
        home = publish.staging_folder(self.identity, batch_id)
        stage(home)
        files, rows = self._staged_files(home)
        hit_failpoint("files.staged")
        is_first = self.layout.commit(batch_id, home, files, self.note(batch_id))
        return WriteResult(rows, is_skipped=not is_first)

    def _stage(self, frame: DataFrame, home: str) -> None:
        """Let Spark write the rows to the staging folder."""
        options = self.sink.writer_options
        if self.sink.compression is not None:
            options["compression"] = self.sink.compression
        writer = frame.write.format(self.sink.form).options(**options)
        # Leave out the empty file that marks the end of a job, which has no use here.
        writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        if self.sink.partition_by:
            writer = writer.partitionBy(*self.sink.partition_by)
        writer.save(f"{str(self.sink.path).rstrip('/')}/{home}")

    def _staged_files(self, home: str) -> tuple[list[FileEntry], int | None]:
        """Return the files with rows, and the number of rows if the files have it."""
        files = [file for file in self.place.walk(home) if file.bytes]
        if not isinstance(self.place, LocalPlace):
            return files, None
        counts = [count_rows(self.place.root / home / file.name, self.sink.form) for file in files]
        # Spark's first task writes a file even without rows.
        non_empty = [file for file, count in zip(files, counts, strict=True) if count != 0]
        known_counts = [count for count in counts if count is not None]
        return non_empty, sum(known_counts) if len(known_counts) == len(counts) else None

    def _require_columns(self, schema: StructType) -> None:
        """Check that partition columns exist, that other columns are left, and that text has one column."""
        names = schema.fieldNames()
        if self.sink.layout == "by_batch" and COLUMN in map(str.lower, names):
            raise NotReady(
                f"{self.sink.kind} {self.sink.path} gets a column '{COLUMN}' from the batch folders, and the "
                "query has one too",
                "rename it in the view",
            )
        for column in self.sink.partition_by:
            if column not in names:
                raise NotReady(
                    f"{self.sink.kind} {self.sink.path} is partitioned by column '{column}', "
                    "which the query does not have",
                    f"choose among {', '.join(names)}",
                )
        other_fields = [field for field in schema.fields if field.name not in self.sink.partition_by]
        if not other_fields:
            raise NotReady(
                f"{self.sink.kind} {self.sink.path} is partitioned by every column; none is left for its files",
                "remove a column from partition_by",
            )
        if self.sink.form == "text" and [field.dataType.simpleString() for field in other_fields] != [
            "string"
        ]:
            raise NotReady(
                f"text {self.sink.path} needs one text column; the query has "
                f"{', '.join(field.name for field in other_fields)}",
                "select one column of type STRING",
            )
