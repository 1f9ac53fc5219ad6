"""Sources that are fed by a test: a stream in Spark's memory with the raw columns of a source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.connectors.source import Source
from millstream.diagnostics.failure import WrongUse
from millstream.runtime.assemble import SOURCE_OPTION, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from millstream.connectors.source import OffsetRange
    from millstream.pipeline.model import SourceEntry

_STREAM = "org.apache.spark.sql.execution.streaming.runtime.MemoryStream$"
# A name in full is one look at the class path; each dot of `jvm.org.apache` would be one that finds nothing.
_UTILS = "org.apache.spark.api.python.PythonUtils"
_DATASET = "org.apache.spark.sql.classic.Dataset$"
HEADERS = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
"""What a source of messages gives beside its columns, when headers are included."""
_TEXT = "text STRING"


@dataclass
class Line:
    """One source of one query: rows as JSON of its raw columns, a portion for each offset.

    Spark forgets a portion once a later batch is committed; here all of them are kept, so that a batch can be
    read again.
    """

    spark: SparkSession
    name: str
    portions: list[tuple[str, ...]] = field(default_factory=list)
    _stream: Any = None

    def __post_init__(self) -> None:
        jvm: Any = self.spark._jvm
        text = getattr(jvm, "org.apache.spark.sql.Encoders").STRING()
        self._stream = _module(self.spark, _STREAM).apply(text, self.spark._jsparkSession)

    def add(self, rows: Sequence[str]) -> None:
        """One more portion; a batch that begins afterwards reads it. Nothing for no rows."""
        if rows:
            self._stream.addData(getattr(self.spark._jvm, _UTILS).toSeq(list(rows)))
            self.portions.append(tuple(rows))

    def reset(self) -> None:
        """Forget all portions: a query that starts from the beginning reads what is added from here on."""
        self._stream.reset()
        self.portions.clear()

    def frame(self, ddl: str) -> DataFrame:
        """The stream, in the raw columns of `ddl`, with the source's name left in the plan."""
        leaf = self._stream.logicalPlan()
        jvm: Any = self.spark._jvm
        options = getattr(jvm, "java.util.HashMap")()
        options.put(SOURCE_OPTION, self.name)
        named = leaf.copy(
            leaf.source(),
            leaf.sourceName(),
            leaf.table(),
            getattr(jvm, "org.apache.spark.sql.util.CaseInsensitiveStringMap")(options),
            leaf.output(),
            leaf.catalog(),
            leaf.identifier(),
            leaf.v1Relation(),
            leaf.sourceIdentifyingName(),
        )
        made = _module(self.spark, _DATASET).ofRows(self.spark._jsparkSession, named)
        return rows_of(DataFrame(made, self.spark), ddl)

    def between(self, start: str | None, end: str, ddl: str) -> DataFrame:
        """The rows of one batch again, from after the offset `start` to `end`, as Spark writes offsets."""
        found = [text for rows in self.portions[_number(start) + 1 : _number(end) + 1] for text in rows]
        return fixed(self.spark, found, ddl)


def fixed(spark: SparkSession, rows: Sequence[str], ddl: str) -> DataFrame:
    """A static table of rows that are given as JSON."""
    jvm: Any = spark._jvm
    made = spark._jsparkSession.createDataset(
        list(rows), getattr(jvm, "org.apache.spark.sql.Encoders").STRING()
    )
    return rows_of(DataFrame(made.toDF(), spark), ddl)


def rows_of(texts: DataFrame, ddl: str) -> DataFrame:
    """The columns of `ddl`, out of one column of JSON."""
    (column,) = texts.columns
    return texts.select(F.from_json(column, ddl).alias("row")).select("row.*")


def raw_ddl(spark: SparkSession, name: str, entry: SourceEntry) -> str:
    """The columns that a source's own reader gives, as DDL. Raises `WrongUse` where nothing tells them."""
    source = entry.source
    ddl = source.columns or (None if source.payload else entry.ddl)
    if ddl is None:
        try:
            return str(read(spark, name, entry).schema.toDDL())
        except Exception as away:
            # A server, a folder or a table that is not there: the reader of each kind says it in its own way.
            raise WrongUse(
                f"nothing tells the columns of source '{name}': it has no schema, and cannot be opened: {away}",
                f"declare its schema: sources.{name}.schema",
            ) from away
    if source.payload:
        return f"{ddl}, {HEADERS}"
    if source.columns is None:
        ddl = ", ".join([ddl, *(f"`{column}` STRING" for column in (*source.place, *_corrupt(entry)))])
    return ddl


def reread(entry: SourceEntry, line: Line, ddl: str) -> SourceEntry:
    """The entry of a fed source: what one batch read of it is read again from the test's own rows.

    Only where its kind can read a batch again; a test must not promise more than a run keeps.
    """
    if type(entry.source).read_range is Source.read_range:
        return entry
    return entry.model_copy(update={"source": _Reread(entry.source, line, ddl)})


class _Reread:
    """A source that stands for another, and reads one batch again from a line."""

    def __init__(self, source: Source, line: Line, ddl: str) -> None:
        self._source = source
        self._line = line
        self._ddl = ddl

    def read_range(self, spark: SparkSession, offsets: OffsetRange, schema: str | None) -> DataFrame:  # noqa: ARG002
        return self._line.between(offsets.start, offsets.end, self._ddl)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def _corrupt(entry: SourceEntry) -> tuple[str, ...]:
    """The column of malformed rows, for kinds whose rows may be malformed: those that name a row's file."""
    return ("_corrupt_record",) if entry.source.place else ()


def _number(offset: str | None) -> int:
    """The number in an offset of a memory stream, -1 before the first."""
    return -1 if offset in (None, "", "-", "null") else int(str(offset))


def _module(spark: SparkSession, name: str) -> Any:
    """A Scala object by its class name."""
    return getattr(spark._jvm, name).__getattr__("MODULE$")
