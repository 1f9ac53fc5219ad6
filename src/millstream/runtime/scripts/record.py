"""What a script did with Spark, as far as a check needs it: queries started, tables written, waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.spec.mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from millstream.diagnostics.finding import Span
    from millstream.runtime.scripts.handle import Handle
    from millstream.runtime.scripts.unknown import Unknown


@dataclass
class Started:
    """A streaming query that the script started."""

    number: int
    """Its place among the script's queries, from 1."""
    frame: DataFrame | Unknown
    name: str = ""
    """The name given to it, or a word of ours."""
    named: bool = False
    mode: OutputMode = OutputMode.APPEND
    trigger: Trigger = field(default_factory=Trigger)
    format: str = ""
    """Spark's name of the sink: kafka, delta, foreachBatch; lower case but for Spark's own words."""
    target: str = ""
    """Path or table, where there is one."""
    options: dict[str, str] = field(default_factory=dict)
    partitioned: tuple[str, ...] = ()
    function: Callable[..., Any] | None = None
    """What foreachBatch or foreach was given."""
    checkpoint: str = ""
    span: Span | None = None
    """The call that starts it."""
    mode_span: Span | None = None
    columns: StructType | None = None
    """What the query writes; None where that cannot be known."""


@dataclass(frozen=True)
class SourceRead:
    """A source that the script read, by the name under which it stands in the plan."""

    name: str
    format: str
    options: dict[str, str]
    span: Span | None
    streaming: bool


@dataclass(frozen=True)
class Wait:
    """A call that waits for queries: for one of them by its number, or for any."""

    query: int | None
    started: int
    """How many queries had been started when it was made."""
    span: Span | None
    bounded: bool = False
    """It waits for a time, or for what there is to read."""


@dataclass(frozen=True)
class Doubt:
    """Something of which nothing can be known here, and why, in one clause."""

    what: str
    why: str
    span: Span | None
    fix: str = ""


@dataclass
class Recording:
    """All that is recorded of one run of a script."""

    queries: list[Started] = field(default_factory=list)
    sources: dict[str, SourceRead] = field(default_factory=dict)
    tables: dict[str, StructType] = field(default_factory=dict)
    """Columns of tables and paths that the script itself makes or writes, by their name in lower case."""
    unknown: dict[str, Doubt] = field(default_factory=dict)
    """Temporary views of which nothing is known, by their name in lower case."""
    doubts: list[Doubt] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    conf: dict[str, str] = field(default_factory=dict)
    """Settings of the session that the script chose."""
    handles: list[Handle] = field(default_factory=list)
    """What the script was given for its queries."""
    emptied: bool = False
    """Was something read that holds rows in truth and none here?"""

    def doubt(self, found: Doubt) -> Doubt:
        """Remember once that something cannot be known."""
        if found not in self.doubts:
            self.doubts.append(found)
        return found

    def fresh(self, wanted: str) -> str:
        """A name for a source that no other has."""
        name, number = wanted, 1
        while name in self.sources:
            number += 1
            name = f"{wanted} {number}"
        return name
