"""The data model of an event-time test: its steps, their actions and expectations, and the results."""

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
"""Column values by name, as in YAML or Python: timestamps as text, None for NULL."""


@dataclass(frozen=True)
class Record:
    """A message of a byte source, as a broker delivers it. Fields that are None get defaults."""

    value: bytes | None
    key: bytes | None = None
    topic: str | None = None
    partition: int = 0
    offset: int | None = None
    timestamp: datetime | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


Fed = Row | Record
"""One item of a feed: a row of the source's schema, or a whole message."""


@dataclass(frozen=True)
class Feed:
    """Feed rows to any number of sources at once. One micro-batch reads them all."""

    rows: Mapping[str, tuple[Fed, ...]]


@dataclass(frozen=True)
class Crash:
    """Crash the query and start it again from its checkpoint.

    `at` is `before_sink` (offsets are planned, nothing is written), `after_sink` (all sinks are written, Spark has
    not committed) or the name of a sink of the query (that sink is written, the next is not). A crash with a feed in
    the same step happens in the batch of that feed. A crash without a feed repeats the previous batch.
    """

    at: str


@dataclass(frozen=True)
class Restart:
    """Stop the query between batches and start it again, with another pipeline if one is given."""

    pipeline: Pipeline | None = None
    description: str = ""
    """The change, as text for a report: `with later.yml`."""


@dataclass(frozen=True)
class Advance:
    """Advance the clock of Spark's triggers, which drives processing-time timeouts and current_timestamp."""

    by: timedelta


Action = Feed | Crash | Restart | Advance


@dataclass(frozen=True)
class Expected:
    """The expectations after a step. None means not checked."""

    rows: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    """Rows of this step, in any order, by the name of a view, a source or a sink; `""` is the query's own output.
    Only the columns that an expected row names are compared. In complete mode, all rows of the last batch."""
    watermark: datetime | None = None
    dropped: int | None = None
    """Number of late rows dropped in this step, over all operators."""
    state: Mapping[str, int] | int | None = None
    """Number of rows in state: the total, or by Spark's operator name."""
    letters: tuple[Row, ...] | int | None = None
    """Dead letters of this step: a number, or rows of `source`, `reason`, `value`, `topic`, `partition`,
    `offset`."""
    error: str | None = None
    """Text that the error message contains when the query fails in this step."""


@dataclass(frozen=True)
class Step:
    """The actions of one step in their order, and the expectations after them."""

    actions: tuple[Action, ...]
    expected: Expected
    where: Span
    """The position of the step in its file."""


@dataclass(frozen=True)
class Case:
    """One test: a query of a pipeline and the steps to run."""

    name: str
    pipeline: Pipeline
    query: str
    steps: tuple[Step, ...]
    file: Path
    where: Span
    static: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    """Rows of static sources, used instead of the data that they read."""
    now: datetime | None = None
    """The clock time at the first batch. Only `Advance` moves the clock."""
    has_real_sinks: bool = False
    """Whether the query's own writers write, to targets of this case alone. Otherwise rows are only collected."""
    tolerance: float = 1e-9
    """Allowed relative error of a floating-point number."""


@dataclass(frozen=True)
class Difference:
    """One failed expectation: `what` was compared, and both sides as lines of text."""

    what: str
    expected: tuple[str, ...]
    got: tuple[str, ...]


@dataclass(frozen=True)
class StepResult:
    """The result of one step."""

    step: Step
    batches: tuple[int, ...]
    """Batch ids of the step, including no-data batches that advance the watermark."""
    watermark: datetime | None
    rows: Mapping[str, tuple[Row, ...]]
    """Rows by the names in the step's expectations, and always `""`, the query's output."""
    dropped: int = 0
    state: Mapping[str, int] = field(default_factory=dict)
    letters: tuple[Row, ...] = ()
    error: str | None = None
    is_external_failure: bool = False
    """Whether the query failed for a reason outside the pipeline, such as a killed process or a slow machine."""
    differences: tuple[Difference, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case: the results of its steps up to the first failed one."""

    case: Case
    results: tuple[StepResult, ...]
    seconds: float
    fault: str | None = None
    """Why the case could not run at all, for example because the pipeline does not start."""

    @property
    def has_passed(self) -> bool:
        """Whether all expectations are met."""
        return self.fault is None and not any(result.differences for result in self.results)
