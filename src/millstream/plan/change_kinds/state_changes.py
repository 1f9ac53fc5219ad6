"""The kinds of change of a watermark and of operators with state."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WatermarkDelayChanged:
    """Another delay on the same event time."""

    column: str
    before: str
    now: str
    is_stored: bool = False
    """Whether the state has times that the former delay has set, as a deduplication within the watermark does."""


@dataclass(frozen=True)
class WatermarkColumnChanged:
    """A watermark on another event time."""

    before: str
    now: str
    has_state: bool


@dataclass(frozen=True)
class WatermarkAdded:
    """A watermark where there was none."""

    column: str
    has_state: bool


@dataclass(frozen=True)
class WatermarkRemoved:
    """No watermark where there was one."""

    column: str
    has_state: bool


@dataclass(frozen=True)
class StatefulOperatorsChanged:
    """Other operators with state: added, removed, or in another order."""

    before: tuple[str, ...]
    now: tuple[str, ...]


@dataclass(frozen=True)
class KeyChanged:
    """Another key of an operator with state. Spark compares only the number and the types of its parts."""

    operator: str
    before: tuple[str, ...]
    now: tuple[str, ...]
    is_refused: bool


@dataclass(frozen=True)
class WindowChanged:
    """Another length, slide or start of an event-time window."""

    operator: str
    before: str
    now: str


@dataclass(frozen=True)
class AggregatesChanged:
    """Other aggregates, or the same in another order. Spark compares only the types of their buffers."""

    before: tuple[str, ...]
    now: tuple[str, ...]
    is_refused: bool


@dataclass(frozen=True)
class StoredColumnsChanged:
    """Other columns of a join's side that Spark stores, such as after one column less above the join."""

    side: str
    before: tuple[str, ...]
    now: tuple[str, ...]
    is_refused: bool


@dataclass(frozen=True)
class JoinTypeChanged:
    """Another type of a stream-stream join."""

    before: str
    now: str
    is_refused: bool


@dataclass(frozen=True)
class JoinConditionChanged:
    """Another condition of a stream-stream join next to its key, such as a bound in time."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    is_inner: bool
    is_stricter: bool
    """Whether each pair that meets the condition met the former one."""


@dataclass(frozen=True)
class LimitChanged:
    """Another number of rows of a limit."""

    before: str
    now: str


@dataclass(frozen=True)
class StateInputChanged:
    """Other rows reach an operator with state: filters, joins with tables, unions."""

    operator: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class KeyFilterAdded:
    """A filter on the key of an operator with state, whose results are only those of keys with new rows."""

    operator: str
    filters: tuple[str, ...]


@dataclass(frozen=True)
class DistinctRowsChanged:
    """Other keys or other rows of a grouping without aggregates in update mode, which writes the keys of a batch."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class StateFunctionChanged:
    """Other code of a Python function whose results reach an operator with state."""

    view: str
    operator: str


@dataclass(frozen=True)
class ProcessorStateChanged:
    """Other state of a processor: variables, types, time mode or output mode."""

    view: str
    what: tuple[str, ...]
    is_refused: bool


@dataclass(frozen=True)
class ProcessorCodeChanged:
    """Other code of a processor with the same state."""

    view: str


StateChange = (
    WatermarkDelayChanged
    | WatermarkColumnChanged
    | WatermarkAdded
    | WatermarkRemoved
    | StatefulOperatorsChanged
    | KeyChanged
    | WindowChanged
    | AggregatesChanged
    | StoredColumnsChanged
    | JoinTypeChanged
    | JoinConditionChanged
    | LimitChanged
    | StateInputChanged
    | KeyFilterAdded
    | DistinctRowsChanged
    | StateFunctionChanged
    | ProcessorStateChanged
    | ProcessorCodeChanged
)
