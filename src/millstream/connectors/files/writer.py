"""Writes batches as files: staged by Spark where no reader looks, then committed as the layout says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.failpoints import reach
from millstream.connectors.files import publish
from millstream.connectors.files.count import rows_in
from millstream.connectors.files.layouts import COLUMN, ByBatch, Layout, Moved
from millstream.connectors.files.place import LocalPlace, Place, at, writable
from millstream.connectors.sink import SinkIdentity, Writer, Written
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.files.place import Found
    from millstream.connectors.files.sink import FilesSink
    from millstream.connectors.remembered import Entry


class FilesWriter(Writer):
    """Delivers the batches of one query to one folder, each once."""

    sums = True

    def __init__(self, sink: FilesSink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self.sink = sink
        self._place: Place | None = None
        self._layout: Layout | None = None

    @property
    def place(self) -> Place:
        """The folder, once `open` has found it."""
        assert self._place is not None, "open comes before all else"
        return self._place

    @property
    def layout(self) -> Layout:
        """How its batches stand there, once `open` has found the folder."""
        assert self._layout is not None, "open comes before all else"
        return self._layout

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Finish what an earlier run committed and did not move.

        Raises `NotReady` when the folder cannot be written, holds the log of Spark's own file sink, or
        `schema` does not fit the format.
        """
        writable(self.sink.path)
        self._fits(schema)
        self._place = at(spark, self.sink.path)
        if self.place.exists("_spark_metadata"):
            raise NotReady(
                f"'{self.sink.path}' was written by Spark's own file sink, and readers see only what its "
                "_spark_metadata lists",
                "write to another folder, or remove _spark_metadata from this one",
            )
        self._layout = self._made(spark)
        self._layout.open()

    def remembered(self, spark: SparkSession) -> tuple[Entry, ...]:
        """What manifests or the folders of batches say of this query."""
        return self._made(spark).entries()

    def entry(self, batch_id: int) -> Entry | None:
        """What stands beside one batch."""
        return self.layout.entry(batch_id)

    def _made(self, spark: SparkSession) -> Layout:
        kind = ByBatch if self.sink.layout == "by_batch" else Moved
        return kind(at(spark, self.sink.path), self.identity)

    def holds(self, batch_id: int) -> bool:
        """Is the batch committed, and every file of it in its place?"""
        return self.layout.holds(batch_id)

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Write one batch. A batch that is committed is not written again; moves it lacks are made."""
        if self.layout.finish(batch_id):
            return Written(skipped=True)
        home = publish.staging(self.identity, batch_id)
        self._stage(frame, home)
        found, rows = self._staged(home)
        reach("files.staged")
        first = self.layout.commit(batch_id, home, found, self.note(batch_id))
        return Written(rows, skipped=not first)

    def _stage(self, frame: DataFrame, home: str) -> None:
        """Have Spark write the rows where no reader looks."""
        options = self.sink.preset | {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in self.sink.options.items()
        }
        if self.sink.compression is not None:
            options["compression"] = self.sink.compression
        writer = frame.write.format(self.sink.form).options(**options)
        # An empty file that says a job has ended is of no use here.
        writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        if self.sink.partition_by:
            writer = writer.partitionBy(*self.sink.partition_by)
        writer.save(f"{str(self.sink.path).rstrip('/')}/{home}")

    def _staged(self, home: str) -> tuple[list[Found], int | None]:
        """The files that hold rows, and how many rows, where the files say so."""
        found = [file for file in self.place.walk(home) if file.bytes]
        if not isinstance(self.place, LocalPlace):
            return found, None
        counts = [rows_in(self.place.root / home / file.name, self.sink.form) for file in found]
        # Spark's first task writes a file even when it has no row to put there.
        full = [file for file, count in zip(found, counts, strict=True) if count != 0]
        known = [count for count in counts if count is not None]
        return full, sum(known) if len(known) == len(counts) else None

    def _fits(self, schema: StructType) -> None:
        """Partition columns must come, with others beside them; text has one column and no more."""
        names = schema.fieldNames()
        if self.sink.layout == "by_batch" and COLUMN in map(str.lower, names):
            raise NotReady(
                f"{self.sink.kind} {self.sink.path} gets a column '{COLUMN}' from the folders of batches, and "
                "the query gives one too",
                "rename it in the view",
            )
        for column in self.sink.partition_by:
            if column not in names:
                raise NotReady(
                    f"{self.sink.kind} {self.sink.path} is divided by column '{column}', which does not come",
                    f"choose among {', '.join(names)}",
                )
        rest = [field for field in schema.fields if field.name not in self.sink.partition_by]
        if not rest:
            raise NotReady(
                f"{self.sink.kind} {self.sink.path} is divided by every column; none is left for its files",
                "take a column out of partition_by",
            )
        if self.sink.form == "text" and [field.dataType.simpleString() for field in rest] != ["string"]:
            raise NotReady(
                f"text {self.sink.path} needs one text column; "
                f"{', '.join(field.name for field in rest)} come",
                "select one column of type STRING",
            )
