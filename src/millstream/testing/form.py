"""The keys of a test file, each with its type and what it means: for the loader, the reference and editors."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from millstream.spec.base import Spec
from millstream.spec.duration import Duration

Rows = list[dict[str, Any]]


class RecordForm(Spec):
    """A message as a broker would give it, for sources of messages; what is not said is filled in.

    `value` or `value_base64` must be there.
    """

    value: str | None = None
    """The bytes of the message as UTF-8 text; null is a message without a value."""
    value_base64: str | None = None
    """The bytes of the message in base64, where they are no text."""
    key: str | None = None
    """The key as UTF-8 text."""
    key_base64: str | None = None
    """The key in base64."""
    topic: str | None = None
    """The topic; the source's first one unless given."""
    partition: int = Field(default=0, ge=0)
    """The partition."""
    offset: int | None = Field(default=None, ge=0)
    """The offset; one more than the partition's last unless given."""
    timestamp: str | None = None
    """When the broker took the message."""
    headers: dict[str, str | None] | list[dict[str, str | None]] = Field(default_factory=dict)
    """Headers by name; a list of mappings where a name stands twice or the order matters."""


class StepForm(Spec):
    """One step: what happens in one micro-batch, and what must hold then.

    In one step the clock goes on first, then comes a restart, then the feed, then a crash in that very batch, then
    the expectations. The word `restart` alone is a step too.
    """

    advance: Duration | None = Field(default=None, examples=["10 minutes"])
    """The clock goes on by this length of time."""
    restart: bool | None = None
    """The run ends between two batches and starts again from its checkpoint."""
    restart_with: str | dict[str, Any] | None = Field(default=None, examples=["later.yml"])
    """The same, with another version of the pipeline: its file, or single values laid over this one as by `set`."""
    feed: dict[str, Rows] | None = None
    """Rows that arrive, by source, all read by one micro-batch. A row is columns by name; for a source of messages
    it may be `{record: {…}}`, the message as it came."""
    crash: str | None = Field(default=None, examples=["after_sink"])
    """The run dies in the batch of this step, or of the step before where nothing is fed, and starts again from its
    checkpoint, which repeats the batch. `before_sink`: nothing is written. `after_sink`: every sink is written,
    and Spark has not committed. The name of a sink: that one is written, and the next one is not."""
    expect: Rows | dict[str, Rows] | None = None
    """The rows that the query gives in this step, in any order; `[]` is none. By the name of a view, a source or a
    sink of the query, the rows of that. A row compares the columns it names."""
    expect_watermark: str | None = None
    """The watermark after the step."""
    expect_dropped: int | None = Field(default=None, ge=0)
    """How many rows came too late in this step, over all operators."""
    expect_state: int | dict[str, int] | None = None
    """How many rows are in state after the step: in all, or by Spark's name of the operator."""
    expect_dead_letters: int | Rows | None = None
    """The dead letters of this step: how many, or rows with any of `source`, `reason`, `value`, `topic`,
    `partition` and `offset`. A `reason` may be a part of the reason."""
    expect_error: str | None = None
    """A part of what the query says as it fails in this step."""


class CaseForm(Spec):
    """One test: a query of the pipeline, step by step, from a fresh checkpoint."""

    query: str | None = None
    """The query that is played; the pipeline's only one unless given."""
    now: str | None = None
    """What the clock says at the first batch, 2026-01-01 00:00:00 unless given; only `advance` moves it on."""
    params: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Parameters of the pipeline's SQL, in place of its own."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Values of the pipeline, in place of its own: keys with dots, as for `--set`."""
    static: dict[str, Rows] = Field(default_factory=dict)
    """The rows of static sources, in place of what they read."""
    sinks: Literal["collected", "real"] = "collected"
    """`collected`: rows are looked at and written nowhere. `real`: the query's own writers write, onto targets that
    belong to this test alone."""
    tolerance: float = Field(default=1e-9, ge=0)
    """How far a floating-point number may be from the expected one, relative to it; as such where that is 0."""
    table: list[dict[str, Any]] | None = None
    """The test once for each row: `${name}` anywhere in it is replaced by the row's value of that name."""
    steps: list[str | StepForm]
    """What happens, in order."""


class SuiteForm(Spec):
    """A test file."""

    pipeline: str | dict[str, Any] | None = None
    """The pipeline under test: a file, or a whole spec; the nearest pipeline.yml upward unless given."""
    tests: dict[str, CaseForm]
    """The tests, each by a sentence that says what holds."""
