"""Build the DataFrames of a pipeline: decode each source, then build each view in the order of the graph."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from millstream.diagnostics.failure import MillstreamError, NotReady
from millstream.frames import user_functions
from millstream.frames.dead_letter_columns import broken_letters
from millstream.frames.decode import decode
from millstream.frames.expectations import apply_expectations
from millstream.frames.stateful_view import build_stateful_view
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.model import Pipeline, SourceEntry, View
from millstream.pipeline.own_code import find_own_path
from millstream.spark.session import explain_lost_jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Reader = Callable[[str, SourceEntry], "DataFrame"]

# An option that every reader ignores and that stays in the plan. It identifies the source of the spec of a leaf.
SOURCE_OPTION = "millstream.source"

# Exceptions of Java in an error of Py4J, each of which means that a server was away.
_JAVA_OUTAGE = re.compile(r"\bjava\.net\.(?:Connect|Socket|SocketTimeout|UnknownHost|NoRouteToHost)Exception")


def build_frames(
    spark: SparkSession,
    pipeline: Pipeline,
    reader: Reader | None = None,
    *,
    queries: Iterable[str] | None = None,
    counted: bool = True,
) -> dict[str, DataFrame]:
    """Return sources and views as DataFrames by name, each also a temporary view of the session.

    With `queries`, only what these read is built: the table that another query reads may not exist yet. `reader`
    replaces how the raw rows of a source are read (empty streams for a check, batches for a preview). Rows of sources
    are counted as they are read if `counted`, which continuous processing does not support. Spark's own errors
    (AnalysisException) pass through. A Python view that raises, or returns no DataFrame, raises `MillstreamError`
    with the function's place, and `NotReady` if it cannot connect to a server.
    """
    frames: dict[str, DataFrame] = {}
    graph = PipelineGraph.of(pipeline)
    needed = _names_behind(graph, pipeline, queries)
    for name, entry in pipeline.sources.items():
        if name not in needed:
            continue
        raw = reader(name, entry) if reader else read_source(spark, name, entry)
        frames[name] = decode(pipeline, name, raw, counted=counted)
        frames[name].createOrReplaceTempView(name)
    for name in graph.order:
        if name not in needed:
            continue
        frames[name] = with_expectations(pipeline, name, _build_named_view(spark, pipeline, name, frames))
        frames[name].createOrReplaceTempView(name)
    return frames


def _names_behind(graph: PipelineGraph, pipeline: Pipeline, queries: Iterable[str] | None) -> set[str]:
    """Return the sources and views that queries read; all of them for None, or if that is not known of a view."""
    everything = {*pipeline.sources, *graph.order}
    if queries is None:
        return everything
    names = {name for query in queries for name in graph.behind(graph.writes[query])}
    # A Python function that is imported into its module, for example, has parameters that only a call finds.
    has_unknown_inputs = any(name in graph.reads and not graph.reads[name] for name in names)
    return everything if has_unknown_inputs else names


def read_source(spark: SparkSession, name: str, entry: SourceEntry) -> DataFrame:
    """Read the raw rows of one source, with its name left in the plan."""
    source = entry.source
    return source.read(_NamedSession(spark, name), static=entry.static, schema=entry.ddl)  # type: ignore[arg-type]


def _build_named_view(
    spark: SparkSession, pipeline: Pipeline, name: str, frames: dict[str, DataFrame]
) -> DataFrame:
    """Build one view, and name the view and the line where the user's function raises an error."""
    view = pipeline.views[name]
    try:
        return build_view(spark, pipeline, name, view, frames)
    except (MillstreamError, PySparkException, Py4JNetworkError):
        # These say what failed by themselves, or that the JVM was lost.
        raise
    except Exception as error:
        # A user's function may raise anything. An error from SQL would be a bug in Millstream.
        if view.sql is not None or explain_lost_jvm(error) is not None:
            raise
        place = _find_place(error, pipeline.folder)
        message = f"view '{name}': {_describe_error(error)} ({place})"
        if isinstance(error, ConnectionError | TimeoutError) or _JAVA_OUTAGE.search(str(error)):
            raise NotReady(message, "start the server to which the function connects") from error
        raise MillstreamError(message, "correct the function") from error


def _find_place(error: Exception, folder: Path) -> str:
    """Return the last place in the project's own code that an error has passed, such as `transforms.py:14`."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if find_own_path(Path(frame.filename), folder)]
    place = (own or frames)[-1]
    return f"{Path(place.filename).name}:{place.lineno}"


def _describe_error(error: Exception) -> str:
    """Return the type and the message of an error, without the stack trace of Java."""
    text = str(error)
    if isinstance(error, Py4JError):
        # The first line names the call, the second one is what Java has raised.
        text = (text.splitlines()[1:2] or [text])[0].removeprefix(": ")
    return f"{type(error).__name__}: {text}"


def build_view(
    spark: SparkSession, pipeline: Pipeline, name: str, view: View, frames: dict[str, DataFrame]
) -> DataFrame:
    """Build one view as a DataFrame."""
    if view.sql is not None:
        return spark.sql(view.sql, args=dict(pipeline.params)) if pipeline.params else spark.sql(view.sql)
    if view.is_stateful:
        return build_stateful_view(pipeline, name, view, frames)
    function = user_functions.find_function(view.python or "", pipeline.folder)
    parameters = list(inspect.signature(function).parameters)
    missing = [parameter for parameter in parameters if parameter not in frames]
    if missing:
        raise MillstreamError(
            f"view '{name}': {function.__name__} ({user_functions.locate_function(function)}) reads "
            f"'{missing[0]}', which is not a source or view",
            f"rename its parameters to names of sources and views: {', '.join(sorted(frames))}",
        )
    frame = function(**{parameter: frames[parameter] for parameter in parameters})
    if not hasattr(frame, "createOrReplaceTempView"):
        raise MillstreamError(
            f"view '{name}': {function.__name__} ({user_functions.locate_function(function)}) must "
            "return a DataFrame; "
            f"it returned {'None' if frame is None else type(frame).__name__}",
            "return the DataFrame that the function builds",
        )
    return frame  # type: ignore[no-any-return]


def with_expectations(pipeline: Pipeline, name: str, frame: DataFrame) -> DataFrame:
    """Apply a view's expectations, and return the rows that pass."""
    expect = pipeline.views[name].expect
    if not expect:
        return frame
    letters = broken_letters(pipeline, name, frame.columns, ()) if frame.isStreaming else None
    return apply_expectations(name, f"view '{name}'", expect, frame, letters=letters)


class _NamedSession:
    """A session whose readers carry the source's name as an option. All else is delegated to the session."""

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
