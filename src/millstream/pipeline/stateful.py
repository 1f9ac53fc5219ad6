"""Views with state: a function or processor that Spark calls for each key, and the state that it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import Field

from millstream.spec.base import Spec
from millstream.spec.duration import Duration
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

Hook = str | Callable[..., Any]


class Clock(StrEnum):
    """The clock that timers, time-outs and time to live go by."""

    NONE = "none"
    """No timers."""
    PROCESSING_TIME = "processing_time"
    """The machine's clock at the start of each batch."""
    EVENT_TIME = "event_time"
    """The watermark."""


class Rows(StrEnum):
    """What a processor is given and gives back."""

    PANDAS = "pandas"
    """Frames of pandas: `transformWithStateInPandas`."""
    ROW = "row"
    """Single `Row` objects: `transformWithState`."""


class MapState(Spec):
    """The columns of a map's keys and of its values."""

    key: dict[str, str] = Field(min_length=1)
    """The columns of a key and their Spark SQL types."""
    value: dict[str, str] = Field(min_length=1)
    """The columns of a value and their Spark SQL types."""


class StateVariable(Spec):
    """One thing that a processor keeps for each key: a single row, a list of rows, or a map."""

    value: dict[str, str] | None = Field(default=None, min_length=1)
    """One row a key: its columns and their Spark SQL types."""
    list_: dict[str, str] | None = Field(default=None, alias="list", min_length=1)
    """A list of rows a key: their columns and Spark SQL types."""
    map_: MapState | None = Field(default=None, alias="map")
    """A map a key."""
    ttl: Duration | None = None
    """How long a value is kept after it was written last; needs `time_mode: processing_time`."""

    @property
    def kinds(self) -> int:
        """How many of the three it claims to be."""
        return sum(one is not None for one in (self.value, self.list_, self.map_))


class Stateful(Spec):
    """What a view with state says besides its function; other views say none of it."""

    transform_with_state: Hook | None = None
    """A processor as `module:Class`, called for each key with its rows and timers: Spark's `transformWithState`."""
    apply_in_pandas_with_state: Hook | None = None
    """A function as `module:name`, called with key, frames and state: Spark's older `applyInPandasWithState`."""
    from_: str | None = Field(default=None, alias="from")
    """The source or view whose rows a function with state is given."""
    group_by: tuple[str, ...] = ()
    """The columns that make the key."""
    columns: dict[str, str] | None = Field(default=None, alias="schema")
    """The columns that a function with state gives back, and their Spark SQL types."""
    state: dict[str, str | StateVariable] = Field(default_factory=dict)
    """What is kept for each key: of a processor its variables by name, of a function the columns of its one row."""
    time_mode: Clock = Clock.NONE
    """The clock of a processor's timers."""
    timeout: Clock = Clock.NONE
    """The clock of a function's time-out."""
    output_mode: OutputMode = OutputMode.APPEND
    """What the rows given back are: `append`, or `update` when a later row may replace them; as the query's."""
    rows: Rows = Rows.PANDAS
    """What a processor is given and gives back."""
    initial_state: str | None = None
    """A static source, or a view of such, whose rows a processor is given before the first batch."""
    event_time: str | None = None
    """The column given back that holds the event time, for steps with a watermark behind a processor."""

    @property
    def stateful(self) -> bool:
        """Is it a view with state?"""
        return self.transform_with_state is not None or self.apply_in_pandas_with_state is not None

    @property
    def inputs(self) -> tuple[tuple[str, str], ...]:
        """The sources and views that a function with state is given, each with the key that names it."""
        named = (("from", self.from_), ("initial_state", self.initial_state))
        return tuple((name, key) for key, name in named if name is not None and self.stateful)


@dataclass(frozen=True)
class Odd:
    """What is wrong in a view: the code of the finding, the place inside the view, and the words."""

    code: str
    path: tuple[str | int, ...]
    message: str
    why: str = ""
    fix: str = ""


# The keys that only one of the two kinds of function has, and what the other calls it.
_PROCESSORS = {"time_mode": "timeout", "rows": "", "initial_state": "", "event_time": ""}
_FUNCTIONS = {"timeout": "time_mode"}


def oddities(name: str, view: Stateful) -> Iterator[Odd]:
    """What does not go together in the view called `name`."""
    who = f"view '{name}'"
    given = {field: Stateful.model_fields[field].alias or field for field in Stateful.model_fields}
    if not view.stateful:
        for field, key in given.items():
            if field in view.model_fields_set:
                message = f"'{key}' of {who} has no meaning: the view has no function with state"
                yield Odd("MS003", (key,), message, fix=f"remove '{key}'")
        return
    processor = view.transform_with_state is not None
    kind = "transform_with_state" if processor else "apply_in_pandas_with_state"
    for field, instead in (_FUNCTIONS if processor else _PROCESSORS).items():
        if field in view.model_fields_set:
            message = f"'{field}' of {who} has no meaning for {kind}"
            yield Odd(
                "MS003", (field,), message, fix=f"write '{instead}'" if instead else f"remove '{field}'"
            )
    for field, what in (("from_", "name"), ("group_by", "[column]"), ("columns", "{column: type}")):
        if not getattr(view, field):
            key = given[field]
            yield Odd("MS004", (), f"{who} has no '{key}', which {kind} needs", fix=f"add '{key}: {what}'")
    if not processor and not view.state:
        fix = "add 'state: {column: type}'"
        yield Odd("MS004", (), f"{who} has no 'state', which {kind} needs", fix=fix)
    if view.output_mode is OutputMode.COMPLETE:
        why = "complete hands over the whole result, and a function with state gives the rows of a batch"
        message = f"{who} gives its rows in output mode complete, which Spark refuses"
        yield Odd("MS003", ("output_mode",), message, why, "write 'append' or 'update'")
    if view.event_time is not None and view.columns and view.event_time not in view.columns:
        message = f"{who} gives no column '{view.event_time}'"
        yield Odd("MS012", ("event_time",), message, fix=f"name one of {', '.join(view.columns)}")
    yield from _variables(who, view, processor=processor)


def _variables(who: str, view: Stateful, *, processor: bool) -> Iterator[Odd]:
    """What does not go together in the state of a view."""
    for name, one in view.state.items():
        if isinstance(one, str) and processor:
            fix = f"write '{name}: {{value: {{column: {one}}}}}'"
            yield Odd("MS003", ("state", name), f"'{name}' of {who} does not say what is kept", fix=fix)
        elif isinstance(one, StateVariable) and not processor:
            why = "applyInPandasWithState keeps one row a key"
            message = f"'{name}' of {who} is a column of its state, and takes a type"
            yield Odd("MS003", ("state", name), message, why, f"write '{name}: string', say")
        elif isinstance(one, StateVariable) and one.kinds != 1:
            message = f"'{name}' of {who} must be exactly one of 'value', 'list' and 'map'"
            fix = f"write '{name}: {{value: {{column: type}}}}', say"
            yield Odd("MS003", ("state", name), message, fix=fix)
        elif isinstance(one, StateVariable) and one.ttl and view.time_mode is not Clock.PROCESSING_TIME:
            why = "Spark counts time to live by the machine's clock, and refuses it while the query runs"
            fix = "write 'time_mode: processing_time', or forget the value by a timer"
            message = f"'{name}' of {who} has a time to live, and the view has no processing time"
            yield Odd("MS003", ("state", name, "ttl"), message, why, fix)
