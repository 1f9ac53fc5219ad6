"""Build a view with state, by `transformWithState` or `applyInPandasWithState`, as the spec declares it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.types import DataType, StructField, StructType

from millstream.connectors.api.ddl import quote_name
from millstream.diagnostics.failure import MillstreamError
from millstream.frames import user_functions
from millstream.frames.stateful_processor import DeclaredProcessor, Variable
from millstream.pipeline.stateful import Clock, Rows, StateVariable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, GroupedData

    from millstream.pipeline.model import Pipeline, View

_TIME_MODES = {Clock.NONE: "None", Clock.PROCESSING_TIME: "ProcessingTime", Clock.EVENT_TIME: "EventTime"}
_TIMEOUTS = {
    Clock.NONE: "NoTimeout",
    Clock.PROCESSING_TIME: "ProcessingTimeTimeout",
    Clock.EVENT_TIME: "EventTimeTimeout",
}


class ViewDeclarationError(MillstreamError):
    """A declaration of a view is wrong. `path` is the place inside the view."""

    def __init__(self, path: tuple[str | int, ...], what: str, fix: str = "") -> None:
        super().__init__(what, fix)
        self.path = path


def build_stateful_view(
    pipeline: Pipeline, name: str, view: View, frames: Mapping[str, DataFrame]
) -> DataFrame:
    """Return the view as a DataFrame.

    Raises `ViewDeclarationError`, or `MillstreamError` if the function is missing.
    """
    owner = f"view '{name}'"
    grouped = _group_rows(owner, "from", view, frames)
    output = _build_struct(owner, ("schema",), view.columns or {})
    assert view.hook is not None, "a view with state has a function"
    key, reference = view.hook
    function = user_functions.find_function(reference, pipeline.folder)
    mode = view.output_mode.value
    if view.apply_in_pandas_with_state is not None:
        columns = {column: kind for column, kind in view.state.items() if isinstance(kind, str)}
        state = _build_struct(owner, ("state",), columns)
        return grouped.applyInPandasWithState(function, output, state, mode, _TIMEOUTS[view.timeout])
    if not inspect.isclass(function) or not hasattr(function, "handleInputRows"):
        raise ViewDeclarationError(
            (key,),
            f"{owner}: {getattr(function, '__name__', function)} is not a class with a method handleInputRows",
            "define 'def handleInputRows(self, key, rows, timer_values)' in it",
        )
    variables = {
        variable: _build_variable(owner, variable, declared)
        for variable, declared in view.state.items()
        if isinstance(declared, StateVariable)
    }
    transform: Any = (
        grouped.transformWithStateInPandas if view.rows is Rows.PANDAS else grouped.transformWithState
    )
    frame: DataFrame = transform(
        DeclaredProcessor(function(), variables),
        output,
        mode,
        _TIME_MODES[view.time_mode],
        _group_rows(owner, "initial_state", view, frames) if view.initial_state is not None else None,
        view.event_time or "",
    )
    return frame


def _group_rows(owner: str, key: str, view: View, frames: Mapping[str, DataFrame]) -> GroupedData:
    """Return the rows that `key` names, grouped."""
    source = (view.from_ if key == "from" else view.initial_state) or ""
    frames_by_name = {name.lower(): frame for name, frame in frames.items()}
    frame = frames_by_name.get(source.lower())
    if frame is None:
        fix = f"name one of {', '.join(sorted(frames))}"
        raise ViewDeclarationError((key,), f"{owner} reads '{source}', which is not a source or view", fix)
    columns = {column.lower() for column in frame.columns}
    for number, column in enumerate(view.group_by):
        if column.lower() not in columns:
            message = f"{owner}: '{source}' has no column '{column}' to group by"
            raise ViewDeclarationError(
                ("group_by", number), message, f"name one of {', '.join(frame.columns)}"
            )
    return frame.groupBy(*(quote_name(column) for column in view.group_by))


def _build_variable(owner: str, name: str, declared: StateVariable) -> Variable:
    """Return a state variable with its columns as Spark's types."""
    ttl = declared.ttl.micros // 1000 if declared.ttl else None
    if declared.map_ is not None:
        key = _build_struct(owner, ("state", name, "map", "key"), declared.map_.key)
        return Variable(
            "map", _build_struct(owner, ("state", name, "map", "value"), declared.map_.value), key, ttl
        )
    kind, columns = ("list", declared.list_) if declared.list_ is not None else ("value", declared.value)
    return Variable(kind, _build_struct(owner, ("state", name, kind), columns or {}), None, ttl)


def _build_struct(owner: str, path: tuple[str | int, ...], columns: Mapping[str, str]) -> StructType:
    """Return declared columns as Spark's type."""
    fields = []
    for column, kind in columns.items():
        try:
            fields.append(StructField(column, DataType.fromDDL(kind)))
        except PySparkException:
            message = f"{owner}: '{kind}' of column '{column}' is not a type of Spark SQL"
            raise ViewDeclarationError(
                (*path, column),
                message,
                "write one such as string, bigint, double, timestamp or array<string>",
            ) from None
    return StructType(fields)
