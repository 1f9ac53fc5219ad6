"""The kinds of change of a source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SourceAdded:
    """A streaming source that the checkpoint has no offsets of."""

    source: str


@dataclass(frozen=True)
class SourceRemoved:
    """A streaming source with offsets in the checkpoint that the query no longer reads.

    Spark counts a source once for each place in the plan. It accepts the offsets if their number is the same.
    """

    source: str
    is_refused: bool = True


@dataclass(frozen=True)
class SourcePlacesChanged:
    """The same streaming sources at more or fewer places of the plan, such as a source united with itself.

    Spark stores an offset for each place, and refuses another number of them.
    """

    before: tuple[str, ...]
    now: tuple[str, ...]


@dataclass(frozen=True)
class SourcesReordered:
    """The same streaming sources in another order. Spark finds offsets by position.

    A source that the plan reads at several places occurs once for each of them.
    """

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
    effect: Literal["start", "next_start", "rate", "place", "rows", "plan"]
    has_state: bool | None
    """Whether the query has state; None if its plan is not known."""


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


SourceChange = (
    SourceAdded
    | SourceRemoved
    | SourcePlacesChanged
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
