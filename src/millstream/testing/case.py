"""An event-time test as values: what is fed, what dies, and what must come out, a step at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from pathlib import Path

    from millstream.diagnostics.finding import Span
    from millstream.pipeline.model import Pipeline

Row = Mapping[str, Any]
"""Columns by name, as YAML or Python has them: text for times, None for NULL."""


@dataclass(frozen=True)
class Record:
    """A message of a source that carries bytes, as a broker would give it. What is None is filled in."""

    value: bytes | None
    key: bytes | None = None
    topic: str | None = None
    partition: int = 0
    offset: int | None = None
    timestamp: datetime | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


Fed = Row | Record
"""One item of a feed: a row of the source's schema, or a message as it came."""


@dataclass(frozen=True)
class Feed:
    """Rows arrive, of any number of sources at once; one micro-batch reads them all."""

    rows: Mapping[str, tuple[Fed, ...]]


@dataclass(frozen=True)
class Crash:
    """The run dies and starts again from its checkpoint.

    `at` is `before_sink` (offsets are planned, nothing is written), `after_sink` (all sinks are written, Spark has
    not committed) or the name of a sink of the query: that one is written and the next is not. A crash with a feed
    in the same step dies in that batch; alone it repeats the batch before.
    """

    at: str


@dataclass(frozen=True)
class Restart:
    """The run ends between batches and starts again, with another pipeline where one is given."""

    pipeline: Pipeline | None = None
    told: str = ""
    """What is different, in words for a report: `with later.yml`."""


@dataclass(frozen=True)
class Advance:
    """The clock that Spark reads at each trigger goes on: time-outs by processing time, current_timestamp."""

    by: timedelta


Action = Feed | Crash | Restart | Advance


@dataclass(frozen=True)
class Expected:
    """What must hold after a step; None where nothing is said."""

    rows: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    """Rows that came in this step, in any order, by the name of a view, a source or a sink; `""` is the query's own
    output. A row compares the columns that it names. In complete mode, all rows of the last batch."""
    watermark: datetime | None = None
    dropped: int | None = None
    """Rows that came too late in this step, over all operators."""
    state: Mapping[str, int] | int | None = None
    """Rows in state: in all, or by Spark's name of the operator."""
    letters: tuple[Row, ...] | int | None = None
    """Dead letters of this step: how many, or rows of `source`, `reason`, `value`, `topic`, `partition`, `offset`."""
    error: str | None = None
    """A part of what the query says as it fails in this step."""


@dataclass(frozen=True)
class Step:
    """What happens, in this order, and what must hold then."""

    actions: tuple[Action, ...]
    expected: Expected
    where: Span
    """The step in its file."""


@dataclass(frozen=True)
class Case:
    """One test: a query of a pipeline, step by step."""

    name: str
    pipeline: Pipeline
    query: str
    steps: tuple[Step, ...]
    file: Path
    where: Span
    static: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    """Rows of static sources, in place of what they read."""
    now: datetime | None = None
    """What the clock says at the first batch; it goes on only by `Advance`."""
    real: bool = False
    """Do the query's own writers write, onto targets of this case alone? Otherwise rows are only collected."""
    tolerance: float = 1e-9
    """How far a floating-point number may be from the expected one, relative to it."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not as expected: `what` was looked at, and both sides as lines of text."""

    what: str
    wanted: tuple[str, ...]
    got: tuple[str, ...]


@dataclass(frozen=True)
class Played:
    """What a step gave."""

    step: Step
    batches: tuple[int, ...]
    """Batch ids of the step, that of a batch without data that moved the watermark on included."""
    watermark: datetime | None
    rows: Mapping[str, tuple[Row, ...]]
    """By the names that the step expects something of, and always `""`, the query's output."""
    dropped: int = 0
    state: Mapping[str, int] = field(default_factory=dict)
    letters: tuple[Row, ...] = ()
    error: str | None = None
    broke: bool = False
    """Did the query end by something beside the pipeline: a process that died, a machine that was too slow?"""
    differences: tuple[Difference, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What became of a case: its steps up to the first that differs."""

    case: Case
    played: tuple[Played, ...]
    seconds: float
    fault: str | None = None
    """Why it could not be played at all: the pipeline does not start, a source is not known."""

    @property
    def passed(self) -> bool:
        """Is everything as expected?"""
        return self.fault is None and not any(one.differences for one in self.played)
