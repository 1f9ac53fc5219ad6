"""What a query does, as plain values read from the plan that Spark analysed: operators, columns, expressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.diagnostics.finding import Span
    from millstream.spec.mode import OutputMode
    from millstream.spec.trigger import Trigger


class Stability(StrEnum):
    """Does an expression give the same value when its batch runs again? From the safest to the worst."""

    STABLE = "stable"
    """It depends on the rows alone."""
    BATCH = "batch"
    """Fixed with the batch and kept through a replay: current_timestamp(), current_date()."""
    ORDER = "order"
    """It depends on the order in which rows arrive: first(), collect_list(), a sum of floats."""
    PARTITION = "partition"
    """It depends on how rows were cut into tasks: spark_partition_id(), input_file_name()."""
    UNKNOWN = "unknown"
    """A function of the user's, of which Spark cannot tell."""
    UNSTABLE = "unstable"
    """Another value each time: now(), rand() with a seed too, uuid()."""


class Growth(StrEnum):
    """What bounds the state of an operator."""

    WATERMARK = "watermark"
    """Entries leave as the watermark passes them."""
    KEYS = "keys"
    """One entry a key, for ever; bounded only where the keys are."""
    ROWS = "rows"
    """One entry a row, for ever: unbounded."""
    OWN = "own"
    """The user's function decides, by its timeouts."""


class WindowKind(StrEnum):
    """Spark's windows over event time."""

    TUMBLING = "tumbling"
    SLIDING = "sliding"
    SESSION = "session"


@dataclass(frozen=True)
class Volatile:
    """An expression that may give another value when its batch runs again."""

    function: str
    """Its name in lower case: `rand`."""
    text: str
    """As Spark prints it, without ids."""
    stability: Stability
    span: Span | None = None
    """Where the user wrote it, or the nearest place that is known."""


@dataclass(frozen=True)
class Column:
    """A column between two operators."""

    name: str
    type: str
    """Spark's DDL: `timestamp`, `struct<start:timestamp,end:timestamp>`."""
    nullable: bool = True
    delay: timedelta | None = None
    """The watermark's delay, when Spark knows the column as event time."""
    volatile: tuple[Volatile, ...] = ()
    """What is not stable and flows into it, or decides whether its row exists at all: the condition of a filter
    or a join, the keys of an aggregation or a deduplication flow into every column above them."""
    origins: frozenset[tuple[str, str]] = frozenset()
    """The columns of sources it is made of: (source, column)."""
    copied: bool = False
    """It is one column of a source, unchanged but perhaps renamed."""


@dataclass(frozen=True)
class Expression:
    """A node of an expression's tree."""

    function: str
    """Spark's name in lower case: `cast`, `window`, `count`, `rand`; `column` and `literal` for leaves."""
    text: str
    """As Spark prints it, without ids."""
    type: str = ""
    """Spark's DDL of its result; empty where it has none."""
    inputs: tuple[Expression, ...] = ()
    column: Column | None = None
    """The column that a leaf reads."""
    value: object = None
    """The value of a literal; None for NULL too."""
    span: Span | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """What else Spark keeps of it, by Spark's names: `evalMode` of a cast, `udfDeterministic` of a function."""
    stability: Stability = Stability.STABLE
    """Of the node's own function, whatever its inputs are."""

    def walk(self) -> Iterator[Expression]:
        """Itself and all below it."""
        yield self
        for one in self.inputs:
            yield from one.walk()


@dataclass(frozen=True)
class TimeWindow:
    """A window over event time that rows are grouped by."""

    kind: WindowKind
    column: str
    """The column of time it is cut from."""
    length: timedelta | None
    """Length, or the gap of a session; None where a session's gap differs by row."""
    slide: timedelta | None = None
    """From one start to the next; None for a session."""


@dataclass(frozen=True)
class TimeBound:
    """A join's condition that says how far apart in event time two rows may be."""

    text: str
    left: str
    right: str
    """The columns of time that it compares."""
    earliest: timedelta | None = None
    latest: timedelta | None = None
    """Right minus left lies from `earliest` to `latest`; None where that side is open."""


@dataclass(frozen=True)
class Operator:
    """A node of the analysed plan; this base where no subclass says more (project, filter, union, …)."""

    number: int
    """Its place in the plan, from the top, from 0."""
    node: str
    """Spark's name of it: `Project`."""
    text: str
    """Spark's line of it, without ids and secrets."""
    inputs: tuple[Operator, ...] = ()
    columns: tuple[Column, ...] = ()
    """What it gives."""
    expressions: tuple[Expression, ...] = ()
    """All expressions of the node itself."""
    streaming: bool = False
    """Is there a stream below it?"""
    span: Span | None = None
    """Where the user wrote it, or the nearest place that is known."""
    view: str | None = None
    """The view that it belongs to, where one does."""
    subqueries: tuple[Operator, ...] = ()
    """The plans of subqueries in its expressions (IN, EXISTS, a scalar): tables, read anew for each batch."""

    def walk(self) -> Iterator[Operator]:
        """Itself and all below it, from the top; without subqueries, through which no row of its own passes."""
        yield self
        for one in self.inputs:
            yield from one.walk()

    def column(self, name: str) -> Column | None:
        """One of its columns, in which case does not count."""
        return next((one for one in self.columns if one.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class Read(Operator):
    """A leaf: a source read as a stream or as a static table, or rows that stand in the query itself."""

    source: str | None = None
    """The source's name in the spec, or in a script the name given to the reader, or its format and number."""
    format: str = ""
    """Spark's name of the reader: `kafka`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The reader's options, without secrets."""


@dataclass(frozen=True)
class Watermark(Operator):
    """`withWatermark`."""

    event_time: str = ""
    delay: timedelta = timedelta()


@dataclass(frozen=True)
class Stateful(Operator):
    """An operator that keeps state between batches."""

    growth: Growth = Growth.KEYS
    leaves: str = ""
    """In words, what makes an entry leave: `a window leaves when the watermark passes its end`."""


@dataclass(frozen=True)
class Aggregate(Stateful):
    """GROUP BY."""

    keys: tuple[Column, ...] = ()
    functions: tuple[Expression, ...] = ()
    """The aggregate functions."""
    window: TimeWindow | None = None
    event_time_key: Column | None = None
    """The key that Spark evicts by: one with a watermark."""


@dataclass(frozen=True)
class Deduplicate(Stateful):
    """`dropDuplicates`, `dropDuplicatesWithinWatermark`, DISTINCT."""

    keys: tuple[Column, ...] = ()
    within_watermark: bool = False


@dataclass(frozen=True)
class Join(Stateful):
    """A join of a stream with a stream or a static table. It keeps state only where both sides are streams."""

    how: str = "inner"
    """Spark's name: inner, cross, left_outer, right_outer, full_outer, left_semi, left_anti."""
    condition: Expression | None = None
    keys: tuple[tuple[Column, Column], ...] = ()
    """Pairs that must be equal, left and right."""
    bound: TimeBound | None = None

    @property
    def of_streams(self) -> bool:
        """Are both sides streams?"""
        return len(self.inputs) == 2 and all(side.streaming for side in self.inputs)


@dataclass(frozen=True)
class StatefulFunction(Stateful):
    """`applyInPandasWithState`, `transformWithState` and their kin."""

    keys: tuple[Column, ...] = ()
    function: str = ""
    """The user's function or class."""
    mode: str = ""
    timeout: str = "none"
    """none, processing_time or event_time."""


@dataclass(frozen=True)
class BatchFunction(Operator):
    """`applyInPandas`, `mapInPandas`, `mapInArrow`, a cogroup: a function that sees one batch and no state."""

    function: str = ""
    keys: tuple[Column, ...] = ()
    """What it groups by; none for the map family."""


@dataclass(frozen=True)
class Limit(Operator):
    """LIMIT."""

    rows: int | None = None


@dataclass(frozen=True)
class BatchWrite:
    """A call in a user's function that writes a batch."""

    format: str
    """Spark's name of the writer, in lower case: `jdbc`; empty where it cannot be read."""
    adds: bool
    """It only adds rows: a batch that comes again is there twice."""
    span: Span | None = None
    once: bool = False
    """It fails where something is already, and writes to the same place each time."""
    no_replay: bool = False
    """It fails where something is already, and writes a batch to the same place when it comes again."""


@dataclass(frozen=True)
class BatchCode:
    """What the source of a function shows that is given each batch: of foreachBatch, or a writer of foreach.

    Each `Span` is a place in that source. What cannot be read there is not guessed: then `opaque` is set.
    """

    name: str
    span: Span | None = None
    """Where it is defined."""
    uses_batch_id: bool = False
    writes: tuple[BatchWrite, ...] = ()
    actions: tuple[Span, ...] = ()
    """Calls that run the whole batch, the most that lie on one way through the function."""
    persisted: bool = False
    """Is the batch cached before it is used?"""
    swallowed: tuple[Span, ...] = ()
    """`except` clauses that let a batch pass for written when writing it failed."""
    collected: tuple[Span, ...] = ()
    """Calls that bring every row of a batch into the driver's memory."""
    outer_session: tuple[tuple[str, Span], ...] = ()
    """Temporary views of the batch that are read by another session than the batch's: name and place."""
    by_partition: Span | None = None
    """Where a writer of foreach tells repeated rows by partition and epoch."""
    opaque: bool = False
    """Is the batch, or its number, handed to code that was not read?"""


@dataclass(frozen=True)
class PlannedSink:
    """A sink of a planned query, as far as an analysis of rows needs it."""

    name: str
    """`postgres purchases`."""
    kind: str
    key: tuple[str, ...] = ()
    """Columns whose values make a row the same row (`merge_on`)."""
    routed_by: tuple[str, ...] = ()
    """Columns that decide where a row goes: partitions, a topic, a message's key."""
    span: Span | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """A script's options of `writeStream`, as given and without secrets; empty for a spec."""
    function: BatchCode | None = None
    """The function of foreachBatch or foreach, where its source can be read."""


_Some = TypeVar("_Some", bound=Operator)


@dataclass(frozen=True)
class PlannedQuery:
    """A query with the plan that Spark analysed for it."""

    name: str
    root: Operator
    output_mode: OutputMode
    trigger: Trigger
    sinks: tuple[PlannedSink, ...] = ()
    span: Span | None = None
    """The query's name in the spec, or the call that starts it in a script."""
    mode_span: Span | None = None
    """Its output mode, where it is written."""
    spark: Mapping[str, str] = field(default_factory=dict)
    """Settings of the session that the user chose."""

    def walk(self) -> Iterator[Operator]:
        """Its operators, from the sink to the sources."""
        return self.root.walk()

    def of(self, kind: type[_Some]) -> Iterator[_Some]:
        """Its operators of one class that rows of a stream pass through."""
        return (one for one in self.walk() if isinstance(one, kind) and one.streaming)
