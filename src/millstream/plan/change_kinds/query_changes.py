"""The kinds of change of what a query writes, of its settings and of its environment."""

from __future__ import annotations

from dataclasses import dataclass


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
class SinkKeyChanged:
    """Other columns by which rows replace rows in a sink. Without any, rows are added."""

    sink: str
    before: str
    now: str


@dataclass(frozen=True)
class ShufflePartitionsChanged:
    """Another number of shuffle partitions for a query with state."""

    before: str
    now: str
    is_certain: bool = True
    """Whether the query is known to have state; only its plan shows that."""


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
    affects_state: bool | None
    """Whether keys or values in the state may depend on the setting; None if the query's plan is not known."""


@dataclass(frozen=True)
class VersionChanged:
    """Another version of Spark, Millstream, Python or Java."""

    what: str
    before: str
    now: str


@dataclass(frozen=True)
class ViewChanged:
    """Another definition of a view, other expectations of its rows or other parameters, compared without Spark."""

    view: str


@dataclass(frozen=True)
class PlanUnknown:
    """A checkpoint whose record has no plan, or no record at all."""

    reason: str


QueryChange = (
    FunctionChanged
    | RowsChanged
    | ColumnsChanged
    | OutputModeChanged
    | TriggerChanged
    | SinkAdded
    | SinkRemoved
    | SinkKeyChanged
    | ShufflePartitionsChanged
    | PinnedSettingChanged
    | SettingChanged
    | VersionChanged
    | ViewChanged
    | PlanUnknown
)
