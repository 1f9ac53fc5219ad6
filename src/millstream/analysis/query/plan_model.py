"""A plain model of the plan that Spark analysed: operators, columns, expressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.diagnostics.finding import Span
    from millstream.spec.guarantee import Guarantee
    from millstream.spec.output_mode import OutputMode
    from millstream.spec.trigger import Trigger


class Stability(StrEnum):
    """Whether an expression gives the same value when its batch runs again, from the safest to the worst."""

    STABLE = "stable"
    """Depends only on the rows."""
    BATCH = "batch"
    """Stored with the batch and reused in a replay: current_timestamp(), current_date()."""
    ORDER = "order"
    """Depends on the order in which rows arrive: first(), collect_list(), a sum of floats."""
    PARTITION = "partition"
    """Depends on the split of rows into tasks: spark_partition_id(), input_file_name()."""
    UNKNOWN = "unknown"
    """A user function, which Spark cannot classify."""
    UNSTABLE = "unstable"
    """Another value each time: now(), rand() (even with a seed), uuid()."""


class Growth(StrEnum):
    """The bound on an operator's state."""

    WATERMARK = "watermark"
    """Entries leave as the watermark passes them."""
    KEYS = "keys"
    """One entry per key, forever; bounded only if the number of keys is."""
    ROWS = "rows"
    """One entry per row, forever: unbounded."""
    OWN = "own"
    """The user's function decides, by its timeouts."""


class WindowKind(StrEnum):
    """Spark's windows over event time."""

    TUMBLING = "tumbling"
    SLIDING = "sliding"
    SESSION = "session"


@dataclass(frozen=True)
class VolatileExpression:
    """An expression that may give another value when its batch runs again."""

    function: str
    """The function's name in lower case: `rand`."""
    text: str
    """As Spark prints it, without ids."""
    stability: Stability
    span: Span | None = None
    """The position in the user's code, or the nearest known one."""


@dataclass(frozen=True)
class Column:
    """A column between two operators."""

    name: str
    type: str
    """Spark's DDL: `timestamp`, `struct<start:timestamp,end:timestamp>`."""
    is_nullable: bool = True
    delay: timedelta | None = None
    """The watermark's delay, when Spark knows the column as event time."""
    volatile: tuple[VolatileExpression, ...] = ()
    """Unstable expressions that affect the value, or decide whether its row exists at all: the condition of a filter
    or a join, and the keys of an aggregation or a deduplication, affect every column above them."""
    origins: frozenset[tuple[str, str]] = frozenset()
    """The source columns from which it is computed: (source, column)."""
    is_copied: bool = False
    """True for a source column that is unchanged, but perhaps renamed."""


@dataclass(frozen=True)
class Expression:
    """A node of an expression's tree."""

    function: str
    """Spark's name in lower case: `cast`, `window`, `count`, `rand`; `column` and `literal` for leaves."""
    text: str
    """As Spark prints it, without ids."""
    type: str = ""
    """The result type in Spark's DDL; empty if unknown."""
    inputs: tuple[Expression, ...] = ()
    column: Column | None = None
    """The column that a leaf reads."""
    value: object = None
    """The value of a literal; also `None` for NULL."""
    span: Span | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """Other attributes by Spark's names: `evalMode` of a cast, `udfDeterministic` of a function."""
    stability: Stability = Stability.STABLE
    """The stability of the function itself, whatever its inputs are."""

    def walk(self) -> Iterator[Expression]:
        """Yield this node and all nodes below it."""
        yield self
        for child in self.inputs:
            yield from child.walk()


@dataclass(frozen=True)
class TimeWindow:
    """A window over event time that rows are grouped by."""

    kind: WindowKind
    column: str
    """The time column of the window."""
    length: timedelta | None
    """Length, or the gap of a session; `None` if the gap differs by row."""
    slide: timedelta | None = None
    """Interval between the starts of two windows; `None` for a session."""
    offset: timedelta = timedelta()
    """Start of the first window after 1970-01-01 00:00 UTC."""


@dataclass(frozen=True)
class TimeBound:
    """A join condition that limits how far apart in event time two rows may be."""

    text: str
    left: str
    right: str
    """The time columns that the condition compares."""
    earliest: timedelta | None = None
    latest: timedelta | None = None
    """Right minus left is between `earliest` and `latest`; `None` for a missing bound."""


@dataclass(frozen=True)
class Operator:
    """A node of the analysed plan; nodes without a subclass (project, filter, union, …) use this class."""

    number: int
    """The index in the plan, from the top, from 0."""
    node: str
    """Spark's name of the node: `Project`."""
    text: str
    """Spark's text of the node, without ids and secrets."""
    inputs: tuple[Operator, ...] = ()
    columns: tuple[Column, ...] = ()
    """The output columns."""
    expressions: tuple[Expression, ...] = ()
    """All expressions of the node itself."""
    is_streaming: bool = False
    """True if a stream is below the node."""
    span: Span | None = None
    """The position in the user's code, or the nearest known one."""
    view: str | None = None
    """The view that contains the node, if any."""
    subqueries: tuple[Operator, ...] = ()
    """The plans of subqueries in its expressions (IN, EXISTS, a scalar): tables that each batch reads again."""

    def walk(self) -> Iterator[Operator]:
        """Yield this node and all nodes below it, from the top, without subqueries."""
        yield self
        for child in self.inputs:
            yield from child.walk()

    def column(self, name: str) -> Column | None:
        """Return the output column of this name, ignoring case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class Read(Operator):
    """A leaf: a source read as a stream or as a static table, or literal rows of the query."""

    source: str | None = None
    """The source's name in the spec, or in a script the name given to the reader, or its format and number."""
    format: str = ""
    """Spark's name of the reader: `kafka`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The reader's options, without secrets."""


@dataclass(frozen=True)
class WatermarkOperator(Operator):
    """`withWatermark`."""

    event_time: str = ""
    delay: timedelta = timedelta()


@dataclass(frozen=True)
class StatefulOperator(Operator):
    """An operator that keeps state between batches."""

    growth: Growth = Growth.KEYS
    leaves: str = ""
    """A sentence about when an entry is removed: `a window leaves when the watermark passes its end`."""


@dataclass(frozen=True)
class Aggregate(StatefulOperator):
    """GROUP BY."""

    keys: tuple[Column, ...] = ()
    functions: tuple[Expression, ...] = ()
    """The aggregate functions."""
    window: TimeWindow | None = None
    event_time_key: Column | None = None
    """The key with a watermark, by which Spark evicts groups."""


@dataclass(frozen=True)
class Deduplicate(StatefulOperator):
    """`dropDuplicates`, `dropDuplicatesWithinWatermark`, DISTINCT."""

    keys: tuple[Column, ...] = ()
    is_within_watermark: bool = False


@dataclass(frozen=True)
class Join(StatefulOperator):
    """A join of a stream with a stream or a static table. Only a stream-stream join has state."""

    how: str = "inner"
    """Spark's name: inner, cross, left_outer, right_outer, full_outer, left_semi, left_anti."""
    condition: Expression | None = None
    keys: tuple[tuple[Column, Column], ...] = ()
    """Pairs of left and right columns that must be equal."""
    bound: TimeBound | None = None

    @property
    def is_stream_stream(self) -> bool:
        """Return whether both sides are streams."""
        return len(self.inputs) == 2 and all(side.is_streaming for side in self.inputs)


@dataclass(frozen=True)
class StatefulFunction(StatefulOperator):
    """`applyInPandasWithState`, `transformWithState` and similar."""

    keys: tuple[Column, ...] = ()
    function: str = ""
    """The name of the user's function or class."""
    mode: str = ""
    timeout: str = "none"
    """none, processing_time or event_time."""


@dataclass(frozen=True)
class BatchFunction(Operator):
    """`applyInPandas`, `mapInPandas`, `mapInArrow`, a cogroup: a function that gets one batch and has no state."""

    function: str = ""
    keys: tuple[Column, ...] = ()
    """The grouping columns; empty for the map family."""


@dataclass(frozen=True)
class Limit(Operator):
    """LIMIT."""

    rows: int | None = None


@dataclass(frozen=True)
class BatchWrite:
    """A call in a user's function that writes a batch."""

    format: str
    """Spark's name of the writer, in lower case: `jdbc`; empty if unknown."""
    only_adds: bool
    """True if the write only adds rows, so that a repeated batch is stored twice."""
    span: Span | None = None
    refuses_existing: bool = False
    """True if the write refuses an existing target, and has the same target each time."""
    cannot_replay: bool = False
    """True if the write refuses an existing target, and a repeated batch has the same target."""
    ignores_existing: bool = False
    """True if the write does nothing if its target exists, and has the same target each time."""
    has_batch_id: bool = False
    """True if the rows or the options of the write contain the batch id."""


@dataclass(frozen=True)
class BatchCode:
    """Facts about the source code of a foreachBatch function or a foreach writer.

    Each `Span` is a position in that source. Code that cannot be read is not guessed: `is_opaque` is then set.
    """

    name: str
    span: Span | None = None
    """The position of the definition."""
    uses_batch_id: bool = False
    recognises_repeats: bool = False
    """True if a use of the batch id may recognise a repeated batch: a condition, a call of other code."""
    writes: tuple[BatchWrite, ...] = ()
    actions: tuple[Span, ...] = ()
    """Calls that process the whole batch, on the path through the function with the most of them."""
    is_persisted: bool = False
    """True if the batch is cached before it is used."""
    swallowing_clauses: tuple[Span, ...] = ()
    """`except` clauses that hide a failed write of the batch."""
    collected: tuple[Span, ...] = ()
    """Calls that collect every row of a batch in the driver's memory."""
    outer_session_views: tuple[tuple[str, Span], ...] = ()
    """Temporary views of the batch that are read in another session than the batch's: name and position."""
    partition_epoch_use: Span | None = None
    """The position at which a foreach writer recognises repeated rows by partition and epoch."""
    is_opaque: bool = False
    """True if the batch, or its id, is passed to code that was not read."""

    @property
    def repeated_writes(self) -> tuple[BatchWrite, ...]:
        """The writes that add the rows of a repeated batch once more."""
        if self.recognises_repeats:
            return ()
        return tuple(write for write in self.writes if write.only_adds and not write.has_batch_id)


@dataclass(frozen=True)
class PlannedSink:
    """The attributes of a planned query's sink that the analysis needs."""

    name: str
    """`postgres purchases`."""
    kind: str
    key: tuple[str, ...] = ()
    """Columns that identify a row (`merge_on`)."""
    routed_by: tuple[str, ...] = ()
    """Columns that decide the target of a row: partitions, a topic, a message's key."""
    span: Span | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """The options of a script's `writeStream`, without secrets; empty for a spec."""
    function: BatchCode | None = None
    """The function of foreachBatch or foreach, if its source can be read."""
    guarantee: Guarantee | None = None
    """The guarantee of a script's sink; None for a spec, whose model has it."""


_OperatorKind = TypeVar("_OperatorKind", bound=Operator)


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
    """The position of the output mode, if it is written."""
    spark: Mapping[str, str] = field(default_factory=dict)
    """The Spark settings that the user set."""

    def walk(self) -> Iterator[Operator]:
        """Yield the operators, from the sink to the sources."""
        return self.root.walk()

    def of(self, kind: type[_OperatorKind]) -> Iterator[_OperatorKind]:
        """Yield the streaming operators of one class."""
        return (operator for operator in self.walk() if isinstance(operator, kind) and operator.is_streaming)
