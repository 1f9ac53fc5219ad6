"""Make a view with state: `transformWithState` or `applyInPandasWithState`, by what the spec declares."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.types import DataType, StructField, StructType

from millstream.diagnostics.failure import MillstreamError
from millstream.pipeline.stateful import Clock, Rows, StateVariable
from millstream.runtime import hooks
from millstream.runtime.processor import Declared, Variable

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


class Misdeclared(MillstreamError):
    """What a view declares does not fit; `path` is the place inside the view."""

    def __init__(self, path: tuple[str | int, ...], what: str, fix: str = "") -> None:
        super().__init__(what, fix)
        self.path = path


def stateful(pipeline: Pipeline, name: str, view: View, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The view as a DataFrame. Raises `Misdeclared`, and `MillstreamError` where the function is not there."""
    who = f"view '{name}'"
    grouped = _grouped(who, "from", view, frames)
    output = _struct(who, ("schema",), view.columns or {})
    assert view.hook is not None, "a view with state has a function"
    key, reference = view.hook
    found = hooks.find(reference, pipeline.folder)
    mode = view.output_mode.value
    if view.apply_in_pandas_with_state is not None:
        kept = {column: kind for column, kind in view.state.items() if isinstance(kind, str)}
        state = _struct(who, ("state",), kept)
        return grouped.applyInPandasWithState(found, output, state, mode, _TIMEOUTS[view.timeout])
    if not inspect.isclass(found) or not hasattr(found, "handleInputRows"):
        raise Misdeclared(
            (key,),
            f"{who}: {getattr(found, '__name__', found)} is no class with a method handleInputRows",
            "define 'def handleInputRows(self, key, rows, timer_values)' in it",
        )
    variables = {
        variable: _variable(who, variable, one)
        for variable, one in view.state.items()
        if isinstance(one, StateVariable)
    }
    transform: Any = (
        grouped.transformWithStateInPandas if view.rows is Rows.PANDAS else grouped.transformWithState
    )
    made: DataFrame = transform(
        Declared(found(), variables),
        output,
        mode,
        _TIME_MODES[view.time_mode],
        _grouped(who, "initial_state", view, frames) if view.initial_state is not None else None,
        view.event_time or "",
    )
    return made


def _grouped(who: str, key: str, view: View, frames: Mapping[str, DataFrame]) -> GroupedData:
    """The rows that `key` names, grouped."""
    read = (view.from_ if key == "from" else view.initial_state) or ""
    known = {name.lower(): frame for name, frame in frames.items()}
    frame = known.get(read.lower())
    if frame is None:
        fix = f"name one of {', '.join(sorted(frames))}"
        raise Misdeclared((key,), f"{who} reads '{read}', which is no source or view", fix)
    columns = {column.lower() for column in frame.columns}
    for number, column in enumerate(view.group_by):
        if column.lower() not in columns:
            what = f"{who}: '{read}' has no column '{column}' to group by"
            raise Misdeclared(("group_by", number), what, f"name one of {', '.join(frame.columns)}")
    return frame.groupBy(*(f"`{column.replace('`', '``')}`" for column in view.group_by))


def _variable(who: str, name: str, one: StateVariable) -> Variable:
    """A state variable with its columns as Spark's types."""
    ttl = one.ttl.micros // 1000 if one.ttl else None
    if one.map_ is not None:
        key = _struct(who, ("state", name, "map", "key"), one.map_.key)
        return Variable("map", _struct(who, ("state", name, "map", "value"), one.map_.value), key, ttl)
    kind, columns = ("list", one.list_) if one.list_ is not None else ("value", one.value)
    return Variable(kind, _struct(who, ("state", name, kind), columns or {}), None, ttl)


def _struct(who: str, path: tuple[str | int, ...], columns: Mapping[str, str]) -> StructType:
    """Declared columns as Spark's type."""
    fields = []
    for column, kind in columns.items():
        try:
            fields.append(StructField(column, DataType.fromDDL(kind)))
        except PySparkException:
            what = f"{who}: '{kind}' of column '{column}' is no type of Spark SQL"
            raise Misdeclared(
                (*path, column), what, "write one such as string, bigint, double, timestamp or array<string>"
            ) from None
    return StructType(fields)
