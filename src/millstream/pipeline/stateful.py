"""Views with state: a function or processor that Spark calls for each key, and the state that it stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import Field

from millstream.spec.base import Spec
from millstream.spec.duration import Duration
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

Hook = str | Callable[..., Any]


class Clock(StrEnum):
    """The clock that timers, time-outs and time to live use."""

    NONE = "none"
    """No timers or time-outs."""
    PROCESSING_TIME = "processing_time"
    """The machine's clock at the start of each batch."""
    EVENT_TIME = "event_time"
    """The watermark."""


class Rows(StrEnum):
    """The Python type in which a processor receives and returns rows."""

    PANDAS = "pandas"
    """pandas DataFrames: `transformWithStateInPandas`."""
    ROW = "row"
    """Single `Row` objects: `transformWithState`."""


class MapState(Spec):
    """The columns of a map's keys and of its values."""

    key: dict[str, str] = Field(min_length=1)
    """The columns of a key and their Spark SQL types."""
    value: dict[str, str] = Field(min_length=1)
    """The columns of a value and their Spark SQL types."""


class StateVariable(Spec):
    """One state variable of a processor, stored for each key: a single row, a list of rows, or a map."""

    value: dict[str, str] | None = Field(default=None, min_length=1)
    """One row per key: its columns and their Spark SQL types."""
    list_: dict[str, str] | None = Field(default=None, alias="list", min_length=1)
    """A list of rows per key: their columns and Spark SQL types."""
    map_: MapState | None = Field(default=None, alias="map")
    """A map per key."""
    ttl: Duration | None = None
    """Time to live of a value after its last write; needs `time_mode: processing_time`."""

    @property
    def kinds(self) -> int:
        """The number of `value`, `list` and `map` that are set; exactly one should be."""
        return sum(kind is not None for kind in (self.value, self.list_, self.map_))


class StateSettings(Spec):
    """Settings of a view with state; no other view has them."""

    transform_with_state: Hook | None = None
    """A processor as `module:Class`, called for each key with its rows and timers: Spark's `transformWithState`."""
    apply_in_pandas_with_state: Hook | None = None
    """A function as `module:name`, called with key, frames and state: Spark's older `applyInPandasWithState`."""
    from_: str | None = Field(default=None, alias="from")
    """The source or view whose rows the stateful function receives."""
    group_by: tuple[str, ...] = ()
    """The columns that form the key."""
    columns: dict[str, str] | None = Field(default=None, alias="schema")
    """The columns that the stateful function returns, and their Spark SQL types."""
    state: dict[str, str | StateVariable] = Field(default_factory=dict)
    """The state that is stored for each key: for a processor, its variables by name; for a function, the columns of
    its single row."""
    time_mode: Clock = Clock.NONE
    """The clock that the timers of a processor use."""
    timeout: Clock = Clock.NONE
    """The clock that the time-out of a function uses."""
    output_mode: OutputMode = OutputMode.APPEND
    """Mode of the returned rows: `append`, or `update` if a later row may replace an earlier one. It must be the
    output mode of the query."""
    rows: Rows = Rows.PANDAS
    """The Python type in which a processor receives and returns rows."""
    initial_state: str | None = None
    """A static source, or a view of static sources. The processor receives its rows before the first batch."""
    event_time: str | None = None
    """The column of the returned rows that contains the event time, if a later view needs a watermark."""

    @property
    def is_stateful(self) -> bool:
        """Whether this view has state."""
        return self.transform_with_state is not None or self.apply_in_pandas_with_state is not None

    @property
    def inputs(self) -> tuple[tuple[str, str], ...]:
        """The sources and views that the stateful function reads, each with the key that names it."""
        named = (("from", self.from_), ("initial_state", self.initial_state))
        return tuple((name, key) for key, name in named if name is not None and self.is_stateful)


@dataclass(frozen=True)
class ViewProblem:
    """A problem in a view: the code of the finding, its path inside the view, and its texts."""

    code: str
    path: tuple[str | int, ...]
    message: str
    why: str = ""
    fix: str = ""


# Keys that only one of the two kinds of function has, and the name of the other kind's equivalent.
_PROCESSORS = {"time_mode": "timeout", "rows": "", "initial_state": "", "event_time": ""}
_FUNCTIONS = {"timeout": "time_mode"}


def find_oddities(name: str, view: StateSettings) -> Iterator[ViewProblem]:
    """Yield contradictions between the settings of the view `name`."""
    view_label = f"view '{name}'"
    keys = {field: StateSettings.model_fields[field].alias or field for field in StateSettings.model_fields}
    if not view.is_stateful:
        for field, key in keys.items():
            if field in view.model_fields_set:
                message = f"'{key}' of {view_label} has no effect: the view has no stateful function"
                yield ViewProblem("MS003", (key,), message, fix=f"remove '{key}'")
        return
    processor = view.transform_with_state is not None
    kind = "transform_with_state" if processor else "apply_in_pandas_with_state"
    for field, equivalent in (_FUNCTIONS if processor else _PROCESSORS).items():
        if field in view.model_fields_set:
            message = f"'{field}' of {view_label} has no effect with {kind}"
            yield ViewProblem(
                "MS003", (field,), message, fix=f"write '{equivalent}'" if equivalent else f"remove '{field}'"
            )
    for field, value in (("from_", "name"), ("group_by", "[column]"), ("columns", "{column: type}")):
        if not getattr(view, field):
            key = keys[field]
            yield ViewProblem(
                "MS004", (), f"{view_label} has no '{key}', which {kind} needs", fix=f"add '{key}: {value}'"
            )
    if not processor and not view.state:
        fix = "add 'state: {column: type}'"
        yield ViewProblem("MS004", (), f"{view_label} has no 'state', which {kind} needs", fix=fix)
    if view.output_mode is OutputMode.COMPLETE:
        reason = (
            "complete mode writes the whole result, but a stateful function returns the rows of one batch"
        )
        message = f"{view_label} returns rows in output mode complete, which Spark refuses"
        yield ViewProblem("MS003", ("output_mode",), message, reason, "write 'append' or 'update'")
    if view.event_time is not None and view.columns and view.event_time not in view.columns:
        message = f"{view_label} has no column '{view.event_time}'"
        yield ViewProblem("MS012", ("event_time",), message, fix=f"name one of {', '.join(view.columns)}")
    yield from _variables(view_label, view, processor=processor)


def _variables(view_label: str, view: StateSettings, *, processor: bool) -> Iterator[ViewProblem]:
    """Yield contradictions in the state of a view."""
    for name, variable in view.state.items():
        if isinstance(variable, str) and processor:
            fix = f"write '{name}: {{value: {{column: {variable}}}}}'"
            yield ViewProblem(
                "MS003", ("state", name), f"'{name}' of {view_label} does not declare its kind", fix=fix
            )
        elif isinstance(variable, StateVariable) and not processor:
            reason = "applyInPandasWithState stores one row per key"
            message = f"'{name}' of {view_label} is a column of its state and must be a type"
            yield ViewProblem(
                "MS003", ("state", name), message, reason, f"write for example '{name}: string'"
            )
        elif isinstance(variable, StateVariable) and variable.kinds != 1:
            message = f"'{name}' of {view_label} must be exactly one of 'value', 'list' and 'map'"
            fix = f"write for example '{name}: {{value: {{column: type}}}}'"
            yield ViewProblem("MS003", ("state", name), message, fix=fix)
        elif (
            isinstance(variable, StateVariable)
            and variable.ttl
            and view.time_mode is not Clock.PROCESSING_TIME
        ):
            reason = "Spark measures time to live with processing time, and the query fails when it runs without it"
            fix = "write 'time_mode: processing_time', or delete the value in a timer"
            message = (
                f"'{name}' of {view_label} has a time to live, but the view does not use processing time"
            )
            yield ViewProblem("MS003", ("state", name, "ttl"), message, reason, fix)
