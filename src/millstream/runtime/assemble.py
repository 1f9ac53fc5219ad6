"""Build the DataFrames of a pipeline: each source decoded, each view made in the order of the graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import MillstreamError
from millstream.pipeline.graph import Graph
from millstream.pipeline.model import Pipeline, SourceEntry, View
from millstream.runtime import hooks
from millstream.runtime.decode import decode
from millstream.runtime.expect import hold
from millstream.runtime.letter import of_row, passing
from millstream.runtime.stateful import stateful

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Reader = Callable[[str, SourceEntry], "DataFrame"]

# An option that every reader ignores and that stays in the plan: it tells which source of the spec a leaf is.
SOURCE_OPTION = "millstream.source"


def assemble(
    spark: SparkSession, pipeline: Pipeline, reader: Reader | None = None, *, counted: bool = True
) -> dict[str, DataFrame]:
    """Sources and views as DataFrames by name, each also a temporary view of the session.

    `reader` replaces how the raw rows of a source are read (empty streams for a check, batches for a look). Rows of
    sources are counted in passing, unless they are not to be `counted`: continuous processing cannot.
    Spark's own errors (AnalysisException) pass through; a Python view that gives no DataFrame raises
    `MillstreamError` naming its place.
    """
    frames: dict[str, DataFrame] = {}
    for name, entry in pipeline.sources.items():
        raw = reader(name, entry) if reader else read(spark, name, entry)
        frames[name] = decode(pipeline, name, raw, counted=counted)
        frames[name].createOrReplaceTempView(name)
    for name in Graph.of(pipeline).order:
        frames[name] = held(pipeline, name, make(spark, pipeline, name, pipeline.views[name], frames))
        frames[name].createOrReplaceTempView(name)
    return frames


def read(spark: SparkSession, name: str, entry: SourceEntry) -> DataFrame:
    """The raw rows of one source, with its name left in the plan."""
    source = entry.source
    return source.read(_Named(spark, name), static=entry.static, schema=entry.ddl)  # type: ignore[arg-type]


def make(
    spark: SparkSession, pipeline: Pipeline, name: str, view: View, frames: dict[str, DataFrame]
) -> DataFrame:
    """One view as a DataFrame."""
    if view.sql is not None:
        return spark.sql(view.sql, args=dict(pipeline.params)) if pipeline.params else spark.sql(view.sql)
    if view.stateful:
        return stateful(pipeline, name, view, frames)
    function = hooks.find(view.python or "", pipeline.folder)
    wanted = list(inspect.signature(function).parameters)
    missing = [parameter for parameter in wanted if parameter not in frames]
    if missing:
        raise MillstreamError(
            f"view '{name}': {function.__name__} ({hooks.place(function)}) reads '{missing[0]}', "
            "which is no source or view",
            f"name its parameters after sources and views: {', '.join(sorted(frames))}",
        )
    made = function(**{parameter: frames[parameter] for parameter in wanted})
    if not hasattr(made, "createOrReplaceTempView"):
        raise MillstreamError(
            f"view '{name}': {function.__name__} ({hooks.place(function)}) must return a DataFrame; "
            f"it returned {'None' if made is None else type(made).__name__}",
            "return the DataFrame that the function builds",
        )
    return made  # type: ignore[no-any-return]


def held(pipeline: Pipeline, name: str, frame: DataFrame) -> DataFrame:
    """The rows of a view that stay, where something is expected of them."""
    expect = pipeline.views[name].expect
    if not expect:
        return frame
    aside = frame.isStreaming and passing(pipeline, name)
    letter = of_row(pipeline, name, frame.columns, ()) if aside else None
    return hold(name, f"view '{name}'", expect, frame, letter=letter)


class _Named:
    """A session whose readers carry the source's name as an option; everything else is the session's own."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark = spark
        self._name = name

    @property
    def readStream(self) -> object:  # noqa: N802 - Spark's name
        return self._spark.readStream.option(SOURCE_OPTION, self._name)

    @property
    def read(self) -> object:
        return self._spark.read.option(SOURCE_OPTION, self._name)

    def __getattr__(self, name: str) -> object:
        return getattr(self._spark, name)
