"""Note in each node of a plan which line of the user's Python made it.

    with callsites.noted(spark):
        made = function(**frames)

While it is open, each call of a method of a DataFrame, a grouped DataFrame or a reader leaves the caller's file
and line in the `Origin` of the plan's nodes that the call makes, where Spark itself notes only the calls of
functions on columns. The origin travels with the node through everything that Spark makes of it later, so that
`planning.operators` (through `Where.call`) and the errors of Spark's checkers can tell the line. The caller is
the nearest frame of the stack outside PySpark and Millstream. `calls` of what the context gives lists the calls
in their order: method, file, line. Costs about a millisecond a call; holds for the thread that opened it.
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
from millstream.runtime.planning.places import Call

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
# Calls that make no node of a plan, and the one that calls a function of the user's, which makes them.
_PLAIN = {"transform", "stop", "printSchema", "explain", "isLocal"}
_OURS = tuple(f"{Path(str(one.__file__)).parent}/" for one in (pyspark, millstream))


@dataclass
class Noted:
    """What was called while calls were noted."""

    calls: list[Call] = field(default_factory=list)
    texts: dict[str, Call] = field(default_factory=dict)
    """SQL given to `SparkSession.sql`, and the call that gave it: Spark keeps the text alone."""
    open: bool = False
    """Is a noted call under way? Those it makes itself are not the user's."""


@contextmanager
def noted(spark: SparkSession) -> Iterator[Noted]:
    """Note the user's lines in the plans made meanwhile. Not to be opened twice at once."""
    note, java = Noted(), _Java.of(spark)
    before: list[tuple[type, str, Any]] = []
    for owner in _CLASSES:
        for name, method in list(vars(owner).items()):
            if (
                callable(method)
                and not name.startswith("_")
                and name not in _PLAIN
                and not isinstance(method, type)
            ):
                before.append((owner, name, method))
                setattr(owner, name, _noting(java, note, name, method))
    try:
        yield note
    finally:
        for owner, name, method in before:
            setattr(owner, name, method)


@contextmanager
def unnoted() -> Iterator[None]:
    """Let PySpark itself note nothing meanwhile: for frames that no line of the user's makes.

    It asks the JVM four times more for each function on a column, which is most of the time that it takes to
    decode a source.
    """
    switch: Any = utils
    before = switch._enable_debugging_cache
    switch._enable_debugging_cache = False
    try:
        yield
    finally:
        switch._enable_debugging_cache = before


@contextmanager
def placed(spark: SparkSession, name: str, file: str, line: int) -> Iterator[None]:
    """Note one place in all nodes made meanwhile: for steps that a spec declares and no line of the user's calls."""
    java = _Java.of(spark)
    outer = java.current.get()
    java.current.set(java.at(name, file, line))
    try:
        yield
    finally:
        java.current.set(outer)


def caller() -> tuple[str, int] | None:
    """The file and line of the nearest caller outside PySpark and Millstream."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((*_OURS, "<")):
            return file, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


@dataclass(frozen=True)
class _Java:
    """Spark's own classes; each look at a package from Python asks the JVM, so they are looked up once."""

    current: Any
    origin: Any
    pair: Any
    option: Any
    none: Any

    @classmethod
    def of(cls, spark: SparkSession) -> _Java:
        jvm: Any = spark._jvm
        trees, scala = jvm.org.apache.spark.sql.catalyst.trees, jvm.scala
        return cls(trees.CurrentOrigin, trees.Origin, scala.Tuple2, scala.Option, scala.Option.empty())

    def at(self, name: str, file: str, line: int) -> Any:
        """The origin of a call."""
        none, site = self.none, self.option.apply(self.pair(name, f"{file}:{line}"))
        return self.origin(none, none, none, none, none, none, none, none, site, none)


def _with_processor(name: str, args: tuple[Any, ...]) -> str:
    """A method, and the class of the processor it is given: Spark keeps the bytes of it, and no name."""
    processor = next((one for one in args if isinstance(one, StatefulProcessor)), None)
    return f"{name}:{type(processor).__name__}" if processor is not None else name


def _noting(java: _Java, note: Noted, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        at = None if note.open else caller()
        if at is None:
            return method(*args, **kwargs)
        made = Call(name, *at)
        note.calls.append(made)
        if name == "sql" and len(args) > 1 and isinstance(args[1], str):
            note.texts[args[1]] = made
        outer = java.current.get()
        java.current.set(java.at(_with_processor(name, args), *at))
        note.open = True
        try:
            return method(*args, **kwargs)
        finally:
            note.open = False
            java.current.set(outer)

    return call
