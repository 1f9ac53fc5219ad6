"""Base class of sinks: settings, facts for the analyser, and the writer that delivers batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from millstream.connectors.api.batch_ledger import BatchMetadata, no_metadata
from millstream.connectors.api.failpoints import POINTS
from millstream.diagnostics.failure import Unfit
from millstream.spec.base import Spec
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

    from millstream.connectors.api.batch_ledger import LedgerEntry
    from millstream.connectors.api.connectivity import ConnectivityFinding
    from millstream.connectors.api.event_time_range import EventTimeRange
    from millstream.connectors.api.lineage_dataset import LineageDataset
    from millstream.connectors.api.sandbox import Sandbox
    from millstream.connectors.api.source import Problem, RequiredResource
    from millstream.spec.guarantee import Guarantee


@dataclass(frozen=True)
class SinkIdentity:
    """The sink and the query that a writer serves.

    `query_id` is the UUID in the checkpoint's `metadata` file: a new checkpoint is a different writer. `sink` is
    stable within the query (`postgres:purchases`) and distinguishes two sinks of one query.
    """

    pipeline: str
    query: str
    query_id: str
    sink: str
    mode: OutputMode

    @property
    def key(self) -> str:
        """Key of this writer in the sink's ledger: query id and sink."""
        return f"{self.query_id}/{self.sink}"


@dataclass(frozen=True)
class WriteResult:
    """Result of a write. `skipped` if the sink already had the batch; `rows` is None if they were not counted.

    `later` if the batch was spooled, to be delivered when the sink is back.
    """

    rows: int | None = None
    skipped: bool = False
    later: bool = False


def conflicting_batch_error(identity: SinkIdentity, batch_id: int) -> Unfit:
    """Return the error for a batch number that another run has used for other records."""
    return Unfit(
        f"sink '{identity.sink}' already has a batch {batch_id} of query '{identity.query}' with other "
        "records: another run writes to it from a copy of this checkpoint",
        "stop one of the two runs; the other may need 'millstream run --adopt' to continue",
    )


def keep_metrics() -> None:
    """Keep the metrics of a batch that is cached or not counted."""


class Writer(ABC):
    """Delivers the batches of one query to one sink. Runs in the driver, in one thread at a time."""

    passes: int = 1
    """Number of times `write` executes its frame. If the sinks of a query execute it more than once, it is cached."""
    runs: bool = True
    """Whether `write` always executes its frame. A user's function skips a batch that it already has."""

    sums: bool = False
    """Whether the sink records a checksum of each batch's rows."""
    has_ledger: bool = False
    """Whether the sink records its batches, so that a missing batch is noticed."""
    skips_empty: bool = False
    """Whether a batch without rows is left out of the ledger. The checkpoint then records such batches."""

    def __init__(self, identity: SinkIdentity) -> None:
        self.identity = identity
        self.note: Callable[[int], BatchMetadata] = no_metadata
        """Metadata to record with a batch, by its number. The content is known once the batch's rows were
        computed."""
        self.checkpoint: Path | None = None
        """Folder of the query's checkpoint, whose lock shows which run may write; None outside a run."""
        self.reset_metrics: Callable[[], None] = keep_metrics
        """Called by a `write` before it executes its frame again, to drop the metrics of the previous execution."""

    def last_committed_batches(self, spark: SparkSession) -> tuple[LedgerEntry, ...]:
        """Return the last batch that each writer of this query committed to this target, including this writer.

        Called before `open`, so that a start that is refused claims nothing. Returns nothing if the kind has no
        ledger or the target is empty. Raises `NotReady` if the sink is unreachable.
        """
        return ()

    def verify_ledger(self, spark: SparkSession, judge: Callable[[Sequence[LedgerEntry]], None]) -> None:
        """Verify the ledger with `judge` before `open`, or once a sink that may be offline is back."""
        judge(self.last_committed_batches(spark))

    def newest(self, spark: SparkSession) -> LedgerEntry | None:
        """Return the last batch of this writer, waiting for batches that `last_committed_batches` misses.

        Called before `open`, if batches seem to be missing. Raises as `last_committed_batches` does.
        """
        return next(
            (entry for entry in self.last_committed_batches(spark) if entry.writer == self.identity.key), None
        )

    def entry(self, batch_id: int) -> LedgerEntry | None:
        """Return the ledger entry of this writer's batch, after `open`; None if it is unknown."""
        return None

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Prepare for writing: create the table, fence older writers. Called once per start, before any batch.

        Raises `NotReady` if the sink is unreachable or rejects `schema`, the query's columns.
        """

    def has_batch(self, batch_id: int) -> bool:
        """Return whether this sink has committed the batch; False if that is unknown."""
        return False

    @abstractmethod
    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Write one batch. Writing the same batch id again changes nothing, if the kind guarantees that."""

    def flow(self, rows: DataFrame) -> DataStreamWriter:
        """Return Spark's writer of a stream without batches, with neither mode nor trigger set.

        Called only for kinds with `flows`, after `open`, instead of `write`. Writes each row at least once.
        """
        # Not abstract, because most kinds support only batches.
        raise NotImplementedError

    def trial(self, frame: DataFrame) -> None:
        """Write rows and roll back, to find out which rows the sink rejects. Raises as `write` does.

        Called only after `write` has failed, and before `close`. Does nothing for a sink that cannot roll back.
        """

    def close(self) -> None:
        """Close connections. Called once, also after a failure."""


class Sink(Spec):
    """Base of every sink kind. A kind is a subclass in `connectors/<system>/sink.py`."""

    kind: ClassVar[str]
    """Key of this kind in a spec."""
    main: ClassVar[str]
    """Field that is set when the value in the spec is a plain string."""
    modes: ClassVar[frozenset[OutputMode]]
    """Output modes that this kind supports with any settings."""
    refuses_text: ClassVar[str | None] = None
    """Text that stops a batch, in a few words such as `a NUL character`; None if any text is accepted."""
    stores_rows: ClassVar[bool] = True
    """Whether rows still exist after the run."""
    is_case_sensitive: ClassVar[bool] = True
    """Whether settings must use the case of the query's column names."""
    can_roll_back: ClassVar[bool] = False
    """Whether the sink can roll back, so that rejected rows can be separated from the rest of a batch."""
    writes_in_tasks: ClassVar[bool] = False
    """Whether Spark's tasks send rows themselves, so that a task that runs twice sends them twice."""

    flows: ClassVar[frozenset[str]] = frozenset()
    """Triggers without batches under which Spark itself writes to it, row by row. The writer then has `flow`."""

    server: ClassVar[str] = ""
    """Server of the local stack that the kind needs; empty if none."""

    def functions(self) -> Mapping[str, str]:
        """Return the user's functions as `module:name` relative to the spec's folder, by their field."""
        return {}

    def bound(self, loaded: Mapping[str, Callable[..., Any]]) -> Sink:
        """Return the sink with its functions, by field; called before `writer` for kinds with `functions`."""
        return self

    @abstractmethod
    def writer(self, identity: SinkIdentity) -> Writer:
        """Create the writer. Its module is imported here because it may be slow to import."""

    @abstractmethod
    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:
        """Return the strongest guarantee in this mode, given a replayable source, and the reason."""

    def with_strongest_guarantee(self) -> Sink:
        """Return the sink with its strongest guarantee, whatever the cost; itself if there is no stronger one."""
        return self

    def conflict_cost(self, mode: OutputMode) -> str:
        """Describe the cost of two queries that replace rows of one target, as a clause; empty if there is none."""
        return ""

    def problems(self, mode: OutputMode) -> list[Problem]:
        """Check the settings in this mode, as far as possible without connecting."""
        return []

    def record_mode_problems(self) -> list[Problem]:
        """Return settings that need batches, and therefore exclude triggers without batches."""
        return []

    def writes_to(self) -> frozenset[str]:
        """Return the targets, in the format of `Source.reads_from`."""
        return frozenset()

    def datasets(self) -> tuple[LineageDataset, ...]:
        """Return the lineage names of the targets; nothing if they have none."""
        return ()

    def weakening_problems(self, mode: OutputMode) -> list[Problem]:
        """Return valid settings with a drawback, such as less acknowledgement or a shorter ledger."""
        return []

    def takes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the written columns of a query."""
        return tuple(names)

    def named_columns(self) -> Mapping[str, tuple[str, ...]]:
        """Return the query's columns that settings name, by field."""
        return {}

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """Check the query's columns, given as names with types in Spark's DDL (`array<string>`)."""
        return []

    @classmethod
    def of_spark(
        cls,
        columns: Mapping[str, str],  # noqa: ARG003 - used by subclasses
        options: Mapping[str, str],  # noqa: ARG003
        partition_columns: tuple[str, ...],  # noqa: ARG003
    ) -> list[Problem]:
        """Return what Spark's own sink of this format would reject at run time in a script.

        `partition_columns` contains the columns of `partitionBy`.
        """
        return []

    def needs(self) -> list[RequiredResource]:
        """Return the resources that must exist outside, such as topics."""
        return []

    def identity(self) -> dict[str, str]:
        """Return the target without secrets, for the checkpoint's record. Does not connect."""
        return {"kind": self.kind, "target": self.target()}

    def probe(self) -> None:
        """Connect, and check that the sink can be written. Raises `NotReady` in one sentence."""

    def ask(self, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterable[ConnectivityFinding]:
        """Check the external system: a probe, unless a kind checks more.

        `columns` are the query's columns with types in Spark's DDL, or None if unknown. Raises `Silent` if the system
        does not respond, `NotReady` if the sink cannot be written.
        """
        self.probe()
        return ()

    @abstractmethod
    def target(self) -> str:
        """Return the target in a word, without secrets: a path, a table, a topic."""

    def canonical_target(self) -> str:
        """Return `target` in one spelling, if it has several."""
        return self.target()

    def location(self) -> str:
        """Return the target's location, such as a database or brokers, if `target` does not show it. No secrets."""
        return ""

    def matches_identity(self, identity: Mapping[str, str]) -> bool:
        """Return whether `identity` is this sink's, possibly in another spelling."""
        own_identity = self.identity()
        return all(identity.get(name) == value for name, value in own_identity.items())

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """Read the latest rows without Spark for `show`, as column names and rows; None if a kind cannot."""
        return None

    def in_sandbox(self, sandbox: Sandbox) -> Sink | None:
        """Return the sink with a target in the sandbox; None if a kind cannot."""
        return None

    def moments(self) -> tuple[str, ...]:
        """Return the failpoints that the writer passes in every batch."""
        system = type(self).__module__.split(".")[-2]
        return tuple(point for point in POINTS if point.startswith(f"{system}."))

    def read_all(self, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:
        """Read all rows as a reader sees them, with names and types of `schema`; None if unknown.

        If a later version of a row replaces an earlier one for readers, return the last versions.
        """
        return None

    def outcome(self, rows: DataFrame) -> DataFrame | None:
        """Compute the sink's content after writing all these rows of its query.

        None if it is the rows themselves, or the last row of each key, in the written columns.
        """
        return None

    def read_time_range(
        self, spark: SparkSession, schema: StructType, mode: OutputMode, time_range: EventTimeRange
    ) -> DataFrame | None:
        """Read at least the rows of a range, as `read_all` does, from a table of any size."""
        return self.read_all(spark, schema, mode)

    def into(self, name: str) -> Sink | None:
        """Return the sink with another table, folder or topic; None if a kind cannot."""
        return None

    def backfill_conflict(self, mode: OutputMode) -> str:
        """Explain why a backfill may not add rows next to the query's, as a clause; empty if it may."""
        return ""

    def replacing_range(self, time_range: EventTimeRange) -> Sink | None:
        """Return the sink with a writer that replaces the rows of a range atomically; None if it cannot."""
        return None

    def versions(self, spark: SparkSession, schema: StructType) -> DataFrame | None:
        """Read every version of a row, for update mode without a key, with a column `batch` to order them.

        Columns are those of `schema` and `batch`; None if a kind stores no versions.
        """
        return None

    @property
    def orders_by_column(self) -> bool:
        """Whether a column, and not the order of the batches, decides which row of a key is the last."""
        return False

    @property
    def sole(self) -> bool:
        """Whether only one query may write to the target. Otherwise each query has its own batch ledger."""
        return False

    @property
    def delete_marker(self) -> tuple[str, str] | None:
        """The setting that marks deletions, and its condition in Spark SQL, true or false for each row."""
        return None

    @property
    def delete_condition(self) -> str | None:
        """Spark SQL condition for rows that delete the row with their key; None if no row does."""
        return None

    def prepare(self) -> None:
        """Create what must exist before the first batch. Called only for a sink in a sandbox."""

    def discard(self) -> None:
        """Delete the written data. Called only for a sink in a sandbox."""

    def replaces(self, mode: OutputMode) -> bool:
        """Return whether a row replaces the one with the same `row_key`."""
        return bool(self.row_key) and mode is not OutputMode.COMPLETE

    def is_rerun_idempotent(self, mode: OutputMode) -> bool:
        """Return whether a full re-run from a new checkpoint is idempotent."""
        return mode is OutputMode.COMPLETE or self.replaces(mode)

    def adoption_conflict(self, mode: OutputMode) -> str:
        """Explain why another checkpoint cannot adopt the existing data; empty if it can."""
        return ""

    def clear_command(self) -> str:
        """Return the command or instruction that empties the target: `rm -r lake/funnel`."""
        return f"empty {self.target()}"

    @property
    def row_key(self) -> tuple[str, ...]:
        """Key columns of a row; empty if every row is distinct."""
        return ()

    @property
    def routed_by(self) -> tuple[str, ...]:
        """Columns that decide where a row goes: a folder, a topic, a partition."""
        return ()

    def describe(self) -> str:
        """Return a short label for a graph: `postgres purchases`."""
        return f"{self.kind} {self.target()}"
