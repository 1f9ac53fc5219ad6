"""The keys of a test file with their types and meanings, for the loader, the reference page and editors."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from millstream.spec.base import Spec
from millstream.spec.duration import Duration

Rows = list[dict[str, Any]]


class RecordForm(Spec):
    """A message as a broker delivers it, for message sources. Omitted fields get defaults.

    `value` or `value_base64` is required.
    """

    value: str | None = None
    """The bytes of the message as UTF-8 text; null means a message without a value."""
    value_base64: str | None = None
    """The bytes of the message in base64, if they are not text."""
    key: str | None = None
    """The key as UTF-8 text."""
    key_base64: str | None = None
    """The key in base64."""
    topic: str | None = None
    """The topic. The default is the first topic of the source."""
    partition: int = Field(default=0, ge=0)
    """The partition."""
    offset: int | None = Field(default=None, ge=0)
    """The offset. The default is one more than the last offset of the partition."""
    timestamp: str | None = None
    """The time at which the broker received the message."""
    headers: dict[str, str | None] | list[dict[str, str | None]] = Field(default_factory=dict)
    """Headers by name. Use a list of mappings if a name is repeated or the order matters."""


class StepForm(Spec):
    """One step: the actions of one micro-batch and the expectations after it.

    The keys of a step take effect in this order, whatever their order in the file: `advance`; a restart; `feed`;
    `crash`, in the batch that reads the rows of `feed`; all keys that begin with `expect`. The word `restart` alone
    is also a step.
    """

    advance: Duration | None = Field(default=None, examples=["10 minutes"])
    """Advance the clock by this duration."""
    restart: bool | None = None
    """Stop the query between two batches and start it again from its checkpoint."""
    restart_with: str | dict[str, Any] | None = Field(default=None, examples=["later.yml"])
    """Restart with another version of the pipeline: its file, or single values to override as with `set`."""
    feed: dict[str, Rows] | None = None
    """Input rows by source. One micro-batch reads all of them. A row maps column names to values; for a message
    source, a row may also be `{record: {…}}`, the message itself."""
    crash: str | None = Field(default=None, examples=["after_sink"])
    """Crash the query in the batch of this step, or in the previous batch if this step feeds nothing, and start it
    again from its checkpoint, which repeats the batch. `before_sink`: before anything is written. `after_sink`:
    after every sink is written, before Spark commits. The name of a sink: after that sink, before the next one."""
    expect: Rows | dict[str, Rows] | None = None
    """The rows that the query outputs in this step, in any order; `[]` means none. A mapping gives rows by the name
    of a view, a source or a sink of the query. Only the columns that an expected row names are compared."""
    expect_watermark: str | None = None
    """The watermark after the step."""
    expect_dropped: int | None = Field(default=None, ge=0)
    """Number of late rows dropped in this step, over all operators."""
    expect_state: int | dict[str, int] | None = None
    """Number of rows in state after the step: the total, or by Spark's operator name."""
    expect_dead_letters: int | Rows | None = None
    """The dead letters of this step: their number, or rows with any of `source`, `reason`, `value`, `topic`,
    `partition` and `offset`. A `reason` matches if the actual reason contains it."""
    expect_error: str | None = None
    """Text that the error message contains when the query fails in this step."""


class CaseForm(Spec):
    """One test: a query of the pipeline, step by step, from a fresh checkpoint."""

    query: str | None = None
    """The query to run. You can omit it if the pipeline has only one query."""
    now: str | None = None
    """The clock time at the first batch. The default is 2026-01-01 00:00:00. Only `advance` moves the clock."""
    params: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Values that replace SQL parameters of the pipeline."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Values that replace values of the pipeline, by dotted keys as for `--set`."""
    static: dict[str, Rows] = Field(default_factory=dict)
    """Rows of static sources, used instead of the data that they read."""
    sinks: Literal["collected", "real"] = "collected"
    """`collected`: rows are collected in memory and not written. `real`: the query's own writers write to targets
    that belong to this test alone."""
    tolerance: float = Field(default=1e-9, ge=0)
    """Allowed relative error of a floating-point number; absolute if the expected number is 0."""
    table: list[dict[str, Any]] | None = None
    """Run the test once per row. `${name}` anywhere in the test is replaced by the row's value of that name."""
    steps: list[str | StepForm]
    """The steps, in order."""


class SuiteForm(Spec):
    """A test file."""

    pipeline: str | dict[str, Any] | None = None
    """The pipeline under test: a file, or a whole spec. The default is pipeline.yml in the test file's folder or in
    the nearest parent folder that has one."""
    tests: dict[str, CaseForm]
    """The tests by name. A name is a sentence that states the expected behavior."""
