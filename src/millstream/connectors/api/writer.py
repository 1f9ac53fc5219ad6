"""Base class of writers, which deliver batches to a sink."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint.lock import require_owner
from millstream.connectors.api.batch_ledger import BatchMetadata, no_metadata
from millstream.connectors.api.sink_hooks.ledger import BatchLedger
from millstream.diagnostics.failure import CheckpointMismatch

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.spec.output_mode import OutputMode


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
    """Result of a write. `is_skipped` if the sink already had the batch; `rows` is None if they were not counted.

    `is_spooled` if the batch was spooled, to be delivered when the sink is back. `way` names the kind's way for small
    batches, if it was used. `is_recorded` is False if the batch changed nothing and has no entry in the sink's
    ledger.
    """

    rows: int | None = None
    is_skipped: bool = False
    is_spooled: bool = False
    way: str = ""
    is_recorded: bool = True


def conflicting_batch_error(identity: SinkIdentity, batch_id: int) -> CheckpointMismatch:
    """Return the error for a batch id that another run has used for other records."""
    return CheckpointMismatch(
        f"sink '{identity.sink}' already has a batch {batch_id} of query '{identity.query}' with other "
        "records: another run writes to it from a copy of this checkpoint",
        "stop one of the two runs; the other may need 'millstream run --adopt' to continue",
    )


def keep_metrics() -> None:
    """Keep the metrics of a batch that is cached or not counted."""


class Writer(BatchLedger, ABC):
    """Delivers the batches of one query to one sink. Runs in the driver, in one thread at a time."""

    passes: int = 1
    """Number of times `write` executes its frame. If the sinks of a query execute it more than once, it is cached."""
    always_executes: bool = True
    """Whether `write` always executes its frame. A user's function skips a batch that it already has."""

    def __init__(self, identity: SinkIdentity) -> None:
        self.identity = identity
        self.note: Callable[[int], BatchMetadata] = no_metadata
        """Metadata to record with a batch, by its number. The content is known once the batch's rows were
        computed."""
        self.checkpoint: CheckpointPath | None = None
        """Folder of the query's checkpoint, whose lock shows which run may write; None outside a run."""
        self.reset_metrics: Callable[[], None] = keep_metrics
        """Called by a `write` before it executes its frame again, to drop the metrics of the previous execution."""

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Prepare for writing: create the table, fence older writers. Called once per start, before any batch.

        Raises `NotReady` if the sink is unreachable or rejects `schema`, the query's columns.
        """

    def require_owner(self) -> None:
        """Raise `CheckpointError` if another run has taken over the query's checkpoint.

        `open` calls it at the moment when it fences older writers, because it may have waited for the sink until
        then. A run that was replaced meanwhile must not fence the run that has replaced it.
        """
        if self.checkpoint is not None:
            require_owner(self.checkpoint)

    @abstractmethod
    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Write one batch. Writing the same batch id again changes nothing, if the kind guarantees that."""

    @property
    def accepts_rows(self) -> bool:
        """Whether `write_rows` can write the batches of this sink. Asked after `open`."""
        return False

    def write_rows(self, rows: pa.Table, batch_id: int) -> WriteResult:
        """Write one batch as `write` does, whose rows are in the driver's memory. Called only if `accepts_rows`.

        `rows` has the columns of `open`, with the types that Spark gives them in Arrow.
        """
        # Not abstract, because most kinds write only what Spark computes.
        raise NotImplementedError

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
