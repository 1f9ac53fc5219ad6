"""Sources fed by a test: a Spark `MemoryStream` with the raw columns of a source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.connectors.api.source import Source
from millstream.diagnostics.failure import InvalidInput
from millstream.frames.build_views import SOURCE_OPTION, read_source
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from millstream.connectors.api.values.offsets import OffsetRange
    from millstream.pipeline.model import SourceEntry

_STREAM = "org.apache.spark.sql.execution.streaming.runtime.MemoryStream"
HEADERS = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
"""The extra column of a message source that includes headers."""
_TEXT = "text STRING"


@dataclass
class Line:
    """The memory stream of one source of one query: rows as JSON of its raw columns, one portion per offset.

    Spark drops a portion once a later batch is committed. This class keeps all portions, so that a batch can be read
    again.
    """

    spark: SparkSession
    name: str
    portions: list[tuple[str, ...]] = field(default_factory=list)
    _stream: Any = None

    def __post_init__(self) -> None:
        jvm: Any = internals.jvm(self.spark)
        text = getattr(jvm, "org.apache.spark.sql.Encoders").STRING()
        self._stream = internals.scala_object(self.spark, _STREAM).apply(
            text, internals.java_session(self.spark)
        )

    def add(self, rows: Sequence[str]) -> None:
        """Add a portion, which the next batch reads. Without rows, add nothing."""
        if rows:
            self._stream.addData(internals.scala_seq(self.spark, rows))
            self.portions.append(tuple(rows))

    def reset(self) -> None:
        """Drop all portions. A query that starts from the beginning reads only what is added later."""
        self._stream.reset()
        self.portions.clear()

    def frame(self, ddl: str) -> DataFrame:
        """Return the stream with the raw columns of `ddl`. Its plan contains the source's name."""
        relation = self._stream.logicalPlan()
        jvm: Any = internals.jvm(self.spark)
        options = getattr(jvm, "java.util.HashMap")()
        options.put(SOURCE_OPTION, self.name)
        named_relation = relation.copy(
            relation.source(),
            relation.sourceName(),
            relation.table(),
            getattr(jvm, "org.apache.spark.sql.util.CaseInsensitiveStringMap")(options),
            relation.output(),
            relation.catalog(),
            relation.identifier(),
            relation.v1Relation(),
            relation.sourceIdentifyingName(),
        )
        return parse_json_rows(internals.frame_of_plan(self.spark, named_relation), ddl)

    def between(self, start: str | None, end: str, ddl: str) -> DataFrame:
        """Return the rows of one batch again, after the offset `start` up to `end`, in Spark's notation."""
        texts = [
            text
            for rows in self.portions[_offset_number(start) + 1 : _offset_number(end) + 1]
            for text in rows
        ]
        return create_static_frame(self.spark, texts, ddl)


def create_static_frame(spark: SparkSession, rows: Sequence[str], ddl: str) -> DataFrame:
    """Create a static DataFrame from rows in JSON."""
    jvm: Any = internals.jvm(spark)
    dataset = internals.java_session(spark).createDataset(
        list(rows), getattr(jvm, "org.apache.spark.sql.Encoders").STRING()
    )
    return parse_json_rows(DataFrame(dataset.toDF(), spark), ddl)


def parse_json_rows(texts: DataFrame, ddl: str) -> DataFrame:
    """Parse the columns of `ddl` from one column of JSON."""
    (column,) = texts.columns
    return texts.select(F.from_json(column, ddl).alias("row")).select("row.*")


def raw_ddl(spark: SparkSession, name: str, entry: SourceEntry) -> str:
    """Return the columns that a source's own reader delivers, as DDL. Raises `InvalidInput` if they are unknown."""
    source = entry.source
    ddl = source.columns or (None if source.has_payload else entry.ddl)
    if ddl is None:
        try:
            return str(read_source(spark, name, entry).schema.toDDL())
        except Exception as error:
            # Each kind of reader raises its own error for a missing server, folder or table.
            raise InvalidInput(
                f"the columns of source '{name}' are unknown: it declares no schema and cannot be opened: {error}",
                f"declare its schema: sources.{name}.schema",
            ) from error
    if source.has_payload:
        return f"{ddl}, {HEADERS}"
    if source.columns is None:
        ddl = ", ".join(
            [ddl, *(f"`{column}` STRING" for column in (*source.place, *_corrupt_columns(entry)))]
        )
    return ddl


def make_rereadable(entry: SourceEntry, line: Line, ddl: str) -> SourceEntry:
    """Return the entry of a fed source that reads a batch again from the test's own rows.

    A source whose kind cannot read a batch again is returned unchanged, so that a test guarantees no more than a run.
    """
    if type(entry.source).read_range is Source.read_range:
        return entry
    return entry.model_copy(update={"source": _RereadableSource(entry.source, line, ddl)})


class _RereadableSource:
    """A proxy of a source that reads one batch again from its memory stream."""

    def __init__(self, source: Source, line: Line, ddl: str) -> None:
        self._source = source
        self._line = line
        self._ddl = ddl

    def read_range(self, spark: SparkSession, offsets: OffsetRange, schema: str | None) -> DataFrame:  # noqa: ARG002
        return self._line.between(offsets.start, offsets.end, self._ddl)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def _corrupt_columns(entry: SourceEntry) -> tuple[str, ...]:
    """Return the column of malformed rows, for file sources, whose rows may be malformed."""
    return ("_corrupt_record",) if entry.source.place else ()


def _offset_number(offset: str | None) -> int:
    """Return the number of a memory stream's offset, or -1 before the first."""
    return -1 if offset in (None, "", "-", "null") else int(str(offset))
