"""The kinds of change between the query that wrote a checkpoint and the query as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SourceAdded:
    """A streaming source that the checkpoint has no offsets of."""

    source: str


@dataclass(frozen=True)
class SourceRemoved:
    """A streaming source with offsets in the checkpoint that the query no longer reads."""

    source: str


@dataclass(frozen=True)
class SourcesReordered:
    """The same streaming sources in another order. Spark finds offsets by position."""

    before: tuple[str, ...]
    now: tuple[str, ...]
    is_one_kind: bool


@dataclass(frozen=True)
class SourceRenamed:
    """A source with another name in the spec that reads the same."""

    before: str
    source: str


@dataclass(frozen=True)
class SourceReplaced:
    """A source of another kind at the same position."""

    source: str
    before: str
    now: str


@dataclass(frozen=True)
class SourceMoved:
    """A source that reads something else: another path, table or topic."""

    source: str
    field: str
    before: str
    now: str


@dataclass(frozen=True)
class SourceGrew:
    """A source that reads more than before, such as one more topic."""

    source: str
    field: str
    added: tuple[str, ...]


@dataclass(frozen=True)
class SourceRecreated:
    """A topic or table that was deleted and created again under its old name."""

    source: str
    what: str


@dataclass(frozen=True)
class SourceOptionChanged:
    """Another option of a source. `effect` says what the option decides."""

    source: str
    option: str
    before: str
    now: str
    effect: Literal["start", "rate", "place", "rows"]
    has_state: bool


@dataclass(frozen=True)
class SourceColumnsChanged:
    """Other columns or types of a source's rows."""

    source: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    retyped: tuple[str, ...]


@dataclass(frozen=True)
class StaticSourceChanged:
    """Another static source, or other options of one."""

    source: str
    has_state: bool


@dataclass(frozen=True)
class WatermarkDelayChanged:
    """Another delay on the same event time."""

    column: str
    before: str
    now: str


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


@dataclass(frozen=True)
class FunctionChanged:
    """Other code of a Python function that no state depends on."""

    view: str


@dataclass(frozen=True)
class RowsChanged:
    """Other filters, joins with tables or unions above all state, or in a query without state."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    output_mode: str
    has_state: bool


@dataclass(frozen=True)
class ColumnsChanged:
    """Other columns for the sinks, or other expressions of them."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True)
class OutputModeChanged:
    """Another output mode."""

    before: str
    now: str
    has_state: bool
    has_eviction: bool
    """Whether a watermark removes state."""


@dataclass(frozen=True)
class TriggerChanged:
    """Another trigger."""

    before: str
    now: str


@dataclass(frozen=True)
class SinkAdded:
    """A sink that the checkpoint has not written to."""

    sink: str


@dataclass(frozen=True)
class SinkRemoved:
    """A sink that the query no longer writes to."""

    sink: str


@dataclass(frozen=True)
class ShufflePartitionsChanged:
    """Another number of shuffle partitions for a query with state."""

    before: str
    now: str


@dataclass(frozen=True)
class PinnedSettingChanged:
    """Another value of a setting that Spark keeps in the checkpoint."""

    setting: str
    before: str
    now: str


@dataclass(frozen=True)
class SettingChanged:
    """Another value of a setting that changes results and that Spark does not keep."""

    setting: str
    before: str
    now: str
    has_state: bool


@dataclass(frozen=True)
class VersionChanged:
    """Another version of Spark, Millstream, Python or Java."""

    what: str
    before: str
    now: str


@dataclass(frozen=True)
class ViewChanged:
    """Other SQL of a view or other parameters, compared without Spark."""

    view: str


@dataclass(frozen=True)
class PlanUnknown:
    """A checkpoint whose record has no plan, or no record at all."""

    reason: str


SourceChange = (
    SourceAdded
    | SourceRemoved
    | SourcesReordered
    | SourceRenamed
    | SourceReplaced
    | SourceMoved
    | SourceGrew
    | SourceRecreated
    | SourceOptionChanged
    | SourceColumnsChanged
    | StaticSourceChanged
)
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
    | StateFunctionChanged
    | ProcessorStateChanged
    | ProcessorCodeChanged
)
QueryChange = (
    FunctionChanged
    | RowsChanged
    | ColumnsChanged
    | OutputModeChanged
    | TriggerChanged
    | SinkAdded
    | SinkRemoved
    | ShufflePartitionsChanged
    | PinnedSettingChanged
    | SettingChanged
    | VersionChanged
    | ViewChanged
    | PlanUnknown
)
Change = SourceChange | StateChange | QueryChange
