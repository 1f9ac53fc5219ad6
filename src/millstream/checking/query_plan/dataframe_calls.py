"""Note in each node of a plan the line of the user's Python that created it.

    with dataframe_calls.noted(spark):
        frame = function(**frames)

Inside the block, each call of a method of a DataFrame, a grouped DataFrame or a reader stores the caller's file and
line in the `Origin` of the plan nodes that the call creates. Spark itself notes only calls of functions on columns.
Spark copies the origin to all nodes that it derives later, so that `query_plan.operators` (through
`SourcePlaces.call`) and the errors of Spark's checkers can report the line. The caller is the nearest stack frame
outside of PySpark and Millstream. The context's `calls` lists the calls in their order: method, file, line. Costs
about a millisecond per call, and affects only the thread that opened it.
"""

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.errors import utils
from pyspark.sql import DataFrameReader, SparkSession
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.group import GroupedData
from pyspark.sql.pandas.group_ops import PandasCogroupedOps, PandasGroupedOpsMixin
from pyspark.sql.pandas.map_ops import PandasMapOpsMixin
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import millstream
from millstream.checking.query_plan.source_spans import SourceCall
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CLASSES: tuple[type, ...] = (
    DataFrame,
    GroupedData,
    PandasCogroupedOps,
    PandasGroupedOpsMixin,
    PandasMapOpsMixin,
    DataFrameReader,
    DataStreamReader,
    SparkSession,
)
# Methods that create no plan node, and `transform`, whose nodes are created by the user's function.
_NOT_NOTED = {"transform", "stop", "printSchema", "explain", "isLocal"}
_OURS = tuple(f"{Path(str(package.__file__)).parent}/" for package in (pyspark, millstream))


@dataclass
class NotedCalls:
    """The calls that were noted in a block."""

    calls: list[SourceCall] = field(default_factory=list)
    texts: dict[str, SourceCall] = field(default_factory=dict)
    """Calls of `SparkSession.sql` by their text, because Spark stores only the text."""
    open: bool = False
    """True during a noted call, because calls inside it are not the user's."""


@contextmanager
def note_calls(spark: SparkSession) -> Iterator[NotedCalls]:
    """Note the user's lines in the plans that are created in the block. Do not nest this context."""
    note, java = NotedCalls(), _Java.of(spark)
    before: list[tuple[type, str, Any]] = []
    for owner in _CLASSES:
        for name, method in list(vars(owner).items()):
            if (
                callable(method)
                and not name.startswith("_")
                and name not in _NOT_NOTED
                and not isinstance(method, type)
            ):
                before.append((owner, name, method))
                setattr(owner, name, _with_note(java, note, name, method))
    try:
        yield note
    finally:
        for owner, name, method in before:
            setattr(owner, name, method)


@contextmanager
def disable_notes() -> Iterator[None]:
    """Disable PySpark's own notes in the block, for frames that no line of the user's code creates.

    The notes cost four more JVM calls for each function on a column, which is most of the time that decoding a
    source takes.
    """
    switch: Any = utils
    before = switch._enable_debugging_cache
    switch._enable_debugging_cache = False
    try:
        yield
    finally:
        switch._enable_debugging_cache = before


@contextmanager
def note_place(spark: SparkSession, name: str, file: str, line: int) -> Iterator[None]:
    """Note one place in all nodes that are created in the block, for steps that a spec declares."""
    java = _Java.of(spark)
    outer = java.current.get()
    java.current.set(java.at(name, file, line))
    try:
        yield
    finally:
        java.current.set(outer)


def find_caller() -> tuple[str, int] | None:
    """Return the file and line of the nearest caller outside of PySpark and Millstream."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((*_OURS, "<")):
            return file, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


@dataclass(frozen=True)
class _Java:
    """Spark's own classes, looked up once, because each lookup of a package is a JVM call."""

    current: Any
    origin: Any
    pair: Any
    option: Any
    none: Any

    @classmethod
    def of(cls, spark: SparkSession) -> _Java:
        jvm: Any = internals.jvm(spark)
        trees, scala = jvm.org.apache.spark.sql.catalyst.trees, jvm.scala
        return cls(trees.CurrentOrigin, trees.Origin, scala.Tuple2, scala.Option, scala.Option.empty())

    def at(self, name: str, file: str, line: int) -> Any:
        """Return the origin of a call."""
        none, site = self.none, self.option.apply(self.pair(name, f"{file}:{line}"))
        return self.origin(none, none, none, none, none, none, none, none, site, none)


def _with_processor(name: str, args: tuple[Any, ...]) -> str:
    """Return a method's name with the class of its processor, because Spark stores only the processor's bytes."""
    processor = next((argument for argument in args if isinstance(argument, StatefulProcessor)), None)
    return f"{name}:{type(processor).__name__}" if processor is not None else name


def _with_note(java: _Java, note: NotedCalls, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        location = None if note.open else find_caller()
        if location is None:
            return method(*args, **kwargs)
        source_call = SourceCall(name, *location)
        note.calls.append(source_call)
        if name == "sql" and len(args) > 1 and isinstance(args[1], str):
            note.texts[args[1]] = source_call
        outer = java.current.get()
        java.current.set(java.at(_with_processor(name, args), *location))
        note.open = True
        try:
            return method(*args, **kwargs)
        finally:
            note.open = False
            java.current.set(outer)

    return call
