"""Run one query: open its writers, start it in its own scheduler pool, and stop it after its batch."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from millstream.checkpoint import empty_batches, metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.integrity.temp_files import delete_partial_files
from millstream.checkpoint.lock import find_lost_lease, find_other_owner, require_owner
from millstream.checkpoint.remote.path import RemotePath, to_spark_path
from millstream.connectors.api.batch_ledger import no_metadata
from millstream.diagnostics.failure import CheckpointError
from millstream.engine.delivery.batch_delivery import Delivery
from millstream.engine.delivery.batch_metadata import BatchNotes, rows_metric_columns
from millstream.engine.delivery.batch_spool import BatchSpool
from millstream.engine.delivery.dead_letters import DeadLetters
from millstream.engine.delivery.foreach_batch_callback import ForeachBatchCallback
from millstream.engine.delivery.sink_writers import create_writer
from millstream.engine.delivery.spool_retry import SpoolRetry
from millstream.engine.delivery.spooling_writer import SpoolingWriter
from millstream.engine.delivery.undelivered import check_new_id
from millstream.engine.events.listener_bus import wait_for_reports
from millstream.engine.events.progress_listener import ROWS_OUT
from millstream.engine.recovery.checkpoint_check import check_unplanned_batches
from millstream.engine.recovery.checkpoint_record import build_record
from millstream.engine.recovery.data_loss import explain_data_loss, has_passed_gaps, require_same_sources
from millstream.engine.recovery.first_position import fix_first_positions
from millstream.engine.recovery.missing_batches import suggest_remedy
from millstream.engine.recovery.poison_record import compute_rows, find_poison_record
from millstream.engine.recovery.sink_reconciliation import SinkReconciliation
from millstream.engine.recovery.source_offsets import Origin, committed_offsets, list_origins
from millstream.engine.recovery.uncommitted_batch import find_uncommitted_batch
from millstream.engine.sink_keys import sink_keys
from millstream.engine.timeout_run import ensure_query_ends
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.model import OnError
from millstream.spark import internals
from millstream.spark.streaming.code_generation import choose_code_generation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.connectors.api.sink import Sink
    from millstream.connectors.api.writer import Writer
    from millstream.engine.events.event_bus import EventBus
    from millstream.engine.recovery.data_loss import MissingOffsets
    from millstream.engine.recovery.poison_record import PoisonRange
    from millstream.engine.recovery.uncommitted_batch import UncommittedBatch
    from millstream.pipeline.model import Pipeline
    from millstream.spec.trigger import Trigger

# Spark's status message while it asks a source for its newest offsets.
_ASKING_FOR_OFFSETS = "Getting offsets from "
_IDLE_MESSAGE = "Waiting for "


@dataclass
class RunningQuery:
    """A query of the spec and, between `start` and its end, Spark's handle of it.

    `trigger` may differ from the spec's, because a run until caught up reads the available input and ends.
    """

    spark: SparkSession
    pipeline: Pipeline
    name: str
    frame: DataFrame
    trigger: Trigger
    events: EventBus
    probed: dict[str, dict[str, str]] = field(default_factory=dict)
    handle: StreamingQuery | None = None
    delivery: Delivery | None = None
    gaps: tuple[MissingOffsets, ...] = ()
    """Gaps that this start skips, with sources that allow it. Empty for any other start."""
    following: RunningQuery | None = None
    """The same query with sources that stop at a gap, to be started once these gaps are skipped."""
    adopt: bool = False
    """Continue once from sink state that other checkpoints of this query wrote."""
    notes: BatchNotes | None = None
    """The metadata of each batch since the start, for the ledgers of the sinks."""
    _first_batches: dict[str, int] = field(default_factory=dict)
    """The first batch that each sink can have in its ledger, as found at the start."""
    _callback: ForeachBatchCallback | None = None

    def start(self) -> None:
        """Open the writers and start the query. Raises the writers' exceptions and Spark's AnalysisException."""
        checkpoint = self._claim_checkpoint()
        writers, notes = self._reconciled_writers(checkpoint)
        query_id = str(checkpoint.query_id())
        planned, committed = checkpoint.planned(), checkpoint.committed()
        self.frame, self.probed = fix_first_positions(
            self.spark, self.pipeline, self.name, checkpoint, self.frame, self.probed
        )
        source_origins = list_origins(self.frame)
        self.delivery = Delivery(
            query=self.name,
            writers=writers,
            letters=self._dead_letters(query_id, checkpoint, source_origins),
            events=self.events,
            notes=notes,
            checkpoint=checkpoint.folder,
            replayed=planned if planned != committed else None,
            generation=choose_code_generation(
                self.pipeline.spark, [origin.name for origin in source_origins if origin.name is not None]
            ),
            probing=SpoolRetry(
                self.name,
                [sink_writer for sink_writer in writers.values() if isinstance(sink_writer, SpoolingWriter)],
            ),
        )
        try:
            for writer in writers.values():
                writer.open(self.spark, self.frame.schema)
            if self.delivery.letters is not None:
                self.delivery.letters.keeper.open(self.spark)
            check_unplanned_batches(self.name, writers, planned)
            for key, writer in writers.items():
                if writer.skips_empty:
                    empty_batches.begin(checkpoint.folder, key, 0 if committed is None else committed + 1)
            self._record(checkpoint, query_id, source_origins)
            # Before the first batch or the background thread can deliver one of them.
            for writer in writers.values():
                if isinstance(writer, SpoolingWriter):
                    writer.report_spooled()
            self.handle = self._start(checkpoint)
        except BaseException:
            self.delivery.close()
            raise
        self.delivery.begin(self.handle)
        if self.delivery.probing is not None:
            self.delivery.probing.start(self.spark)
        self.events.emit(
            "query_started",
            self.name,
            id=self.handle.id,
            run_id=self.handle.runId,
            batch=committed,
            trigger=str(self.trigger),
            trigger_seconds=self.trigger.interval_seconds,
            checkpoint_seconds=self.trigger.checkpoint_seconds,
            sources=[origin.name for origin in source_origins],
            sinks=list(self._sinks()),
            offsets=committed_offsets(checkpoint, committed),
        )

    def _claim_checkpoint(self) -> Checkpoint:
        """Return its checkpoint, with an id. Raises `CheckpointError` if another run has taken it over."""
        checkpoint = Checkpoint(self._folder())
        # This process may have stood still during an outage. Starting then would fence the other run.
        require_owner(checkpoint.folder)
        if self.handle is not None:
            # The sources were probed before the first start of the run. A topic may have been recreated since.
            require_same_sources(self.pipeline, self.name)
        checkpoint.ensure_id()
        planned = checkpoint.planned()
        newest = None if planned is None or self.trigger.continuous else checkpoint.offsets(planned)
        if newest is not None and newest.is_epoch:
            raise CheckpointError(
                f"checkpoint {checkpoint.folder} was written with a continuous trigger, and Spark cannot continue "
                f"it with batches",
                "keep the continuous trigger and run without --until-caught-up, "
                "or give the query another checkpoint",
            )
        return checkpoint

    def _record(self, checkpoint: Checkpoint, query_id: str, source_origins: list[Origin]) -> None:
        """Write the record of this start into the checkpoint's folder."""
        checkpoint_record = build_record(
            self.spark,
            self.pipeline,
            self.name,
            query_id,
            self.frame,
            source_origins,
            self.probed,
            self._first_batches,
            checkpoint.committed(),
        )
        metadata.write(checkpoint.folder, checkpoint_record)

    def _reconciled_writers(self, checkpoint: Checkpoint) -> tuple[dict[str, Writer], BatchNotes]:
        """Return the writers once their sinks agree with the checkpoint.

        Raises `CheckpointMismatch` if they cannot agree.
        """
        while True:
            query_id = str(checkpoint.query_id())
            self.notes = notes = BatchNotes(checkpoint, query_id)
            writers = self._writers(query_id)
            notes.content = any(writer.has_checksums for writer in writers.values())
            reconciliation = SinkReconciliation(
                self.name,
                checkpoint,
                notes,
                self.events,
                adopt=self.adopt,
                waiting=partial(self._spooled_batches, query_id),
                remedy=lambda sink, batches: suggest_remedy(
                    self.pipeline, self.name, sink, checkpoint, batches
                ),
            )
            sinks = [(sink, writers[key]) for key, sink in self._sinks().items() if key in writers]
            agrees = False
            try:
                agrees = reconciliation.survey(self.spark, sinks)
            finally:
                for sink_writer in () if agrees else writers.values():
                    sink_writer.close()
            if agrees:
                self.adopt, self._first_batches = False, reconciliation.since
                return writers, notes
            check_new_id(self.pipeline, self.name)
            checkpoint.renew_id()

    def _spooled_batches(self, query_id: str, sink: str) -> list[int]:
        """List the batches that are spooled for a sink."""
        return [
            spooled.batch for spooled in BatchSpool.of(self.pipeline, self.name, query_id, sink).batches()
        ]

    def _start(self, checkpoint: Checkpoint) -> StreamingQuery:
        # Each query has its own pool unless the spec says otherwise, so that a long batch does not starve the others.
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.pipeline.pool(self.name))
        mode = self.pipeline.queries[self.name].output_mode
        figures = rows_metric_columns(
            self.frame.schema, content=self.notes is not None and self.notes.content
        )
        rows = self.frame.observe(ROWS_OUT, *figures)
        self._callback = ForeachBatchCallback(self.delivery)
        writer = rows.writeStream.queryName(self.name).outputMode(mode.value).foreachBatch(self._callback)
        writer = writer.option("checkpointLocation", to_spark_path(checkpoint.folder))
        if options := self.trigger.options():
            writer = writer.trigger(**options)
        delete_partial_files(checkpoint.folder)
        with ensure_query_ends(self.spark, self.pipeline, self.name, self.trigger):
            return writer.start()

    def _folder(self) -> CheckpointPath:
        return self.pipeline.checkpoint_folder(self.name)

    def _sinks(self) -> dict[str, Sink]:
        """Return the sinks by their keys."""
        entries = self.pipeline.queries[self.name].to
        return {
            key: entry.sink for key, entry in zip(sink_keys(self.pipeline, self.name), entries, strict=True)
        }

    def _writers(self, query_id: str) -> dict[str, Writer]:
        """Return the writer of each sink. Those that may spool a batch come last, so that no other waits for them."""
        query = self.pipeline.queries[self.name]
        entries = zip(sink_keys(self.pipeline, self.name), query.to, strict=True)
        ordered = sorted(entries, key=lambda pair: pair[1].on_error is OnError.DEAD_LETTER)
        return {
            key: create_writer(
                self.pipeline, self.name, query_id, key, entry, self.events, self.notes or no_metadata
            )
            for key, entry in ordered
        }

    def _dead_letters(
        self, query_id: str, checkpoint: Checkpoint, origins: list[Origin]
    ) -> DeadLetters | None:
        """Return the query's dead letters, if one of its sources or views is declared to have them."""
        names = [
            *(origin.name for origin in origins if origin.name),
            *PipelineGraph.of(self.pipeline).views(self.name),
        ]
        has_dead_letters = any(self.pipeline.may_write_dead_letters(name) for name in names)
        return (
            DeadLetters.of(self.pipeline, self.name, query_id, checkpoint, origins)
            if has_dead_letters
            else None
        )

    def look(self) -> None:
        """Emit events that Spark does not report by itself, if any. Called repeatedly while the query runs.

        Raises `CheckpointError` if another run is known to have taken over its remote checkpoint, or if a spooled
        batch cannot be delivered for such a reason.
        """
        retry = None if self.delivery is None else self.delivery.probing
        loss = find_lost_lease(self._folder()) or (None if retry is None else retry.loss)
        if loss is not None:
            raise loss

    @property
    def has_delivered(self) -> bool:
        """Whether a batch has been committed to its sinks since the start."""
        return self.delivery is not None and self.delivery.has_delivered

    @property
    def is_active(self) -> bool:
        """Whether Spark is running the query."""
        return self.handle is not None and bool(self.handle.isActive)

    @property
    def is_idle(self) -> bool:
        """Whether the query waits for rows or for its next trigger."""
        return self.handle is not None and str(self.handle.status["message"]).startswith(_IDLE_MESSAGE)

    def has_passed_gaps(self) -> bool:
        """Return whether a committed batch has moved past the gaps that this start may skip."""
        if self.gaps and self.has_delivered:
            # A remote checkpoint that cannot be read is asked again.
            with suppress(OSError):
                return has_passed_gaps(Checkpoint(self._folder()), self.gaps)
        return False

    def unfinished(self) -> UncommittedBatch | None:
        """Return the batch in which the query failed, or None if it failed between batches."""
        return find_uncommitted_batch(self.pipeline, self.name)

    def poison(self, batch: int) -> PoisonRange | None:
        """Find the smallest part of a batch that fails by itself, in the views or at a sink, if there is one."""
        writers = self.delivery.writers.values() if self.delivery is not None else ()
        try:
            return find_poison_record(
                self.spark,
                self.pipeline,
                self.name,
                batch,
                (compute_rows, *(sink_writer.trial for sink_writer in writers)),
            )
        finally:
            for sink_writer in writers:
                sink_writer.close()

    def explain_data_loss(self) -> CheckpointError | None:
        """Ask the sources which records of the next batch are missing. None if no record is known to be missing."""
        return explain_data_loss(self.pipeline, self.name)

    def awaited_source(self) -> str | None:
        """Return the source whose newest offsets Spark is asking for at this moment, or None.

        A response takes milliseconds. If a broker is down, Spark asks for a minute and more before it gives up,
        and the query looks alive all that time.
        """
        if self.handle is None:
            return None
        message = str(self.handle.status["message"])
        return message.removeprefix(_ASKING_FOR_OFFSETS) if message.startswith(_ASKING_FOR_OFFSETS) else None

    def has_lease(self) -> bool:
        """Return whether its checkpoint is a remote one of which no other run is known to have the lease.

        Asks the file system. If it does not answer, the next start of the query asks again.
        """
        folder = self._folder()
        if not isinstance(folder, RemotePath):
            return False
        with suppress(OSError):
            return find_other_owner(folder) is None
        return True

    def settle(self) -> None:
        """Wait until Spark has reported the last batch, because its listeners lag a little behind the query."""
        wait_for_reports(self.spark)

    def ask_to_end(self) -> None:
        """Let the batch in progress finish and commit, then end. Returns at once; call it until the query has ended.

        Spark's own `stop()` interrupts the batch, and so does Spark if its state becomes TERMINATED while it plans
        one. The delivery of a batch therefore sets that state, and Spark's loop leaves by itself. A query that
        waits for its next trigger, which may be far away, sleeps and is stopped.
        """
        if self.handle is None or self.has_ended():
            return
        if self.delivery is not None:
            self.delivery.is_last = True
        if internals.is_waiting_for_trigger(self.handle):
            self.handle.stop()

    def has_ended(self) -> bool:
        """Return whether the query's thread has ended."""
        return self.handle is None or not internals.is_running(self.handle)

    def stop(self) -> None:
        """Stop at once. A batch in progress is interrupted and runs again at the next start.

        A batch that ignores its interruption, because it waits in Python, is left alone after Spark's `stopTimeout`.
        """
        if self.handle is not None:
            with suppress(Py4JJavaError, PySparkException):
                self.handle.stop()

    def close(self) -> None:
        """Close the writers and detach the `foreachBatch` callback."""
        if self.delivery is not None:
            self.delivery.close()
        if self._callback is not None:
            self._callback.detach()
