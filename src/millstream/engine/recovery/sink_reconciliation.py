"""Check at start, before a sink is claimed, that the checkpoint and the sinks agree on the last batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.checkpoint import adoption_log
from millstream.checkpoint.integrity.damage_report import AFRESH
from millstream.connectors.api.batch_ledger import BACKFILL
from millstream.diagnostics.failure import CheckpointMismatch
from millstream.engine.delivery.spooling_writer import SpoolingWriter
from millstream.engine.events.event_bus import now
from millstream.engine.recovery.missing_batches import find_first_batch, find_missing, format_batches
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pyspark.sql import SparkSession

    from millstream.checkpoint.folder import Checkpoint
    from millstream.connectors.api.batch_ledger import LedgerEntry
    from millstream.connectors.api.sink import Sink
    from millstream.connectors.api.writer import Writer
    from millstream.engine.delivery.batch_metadata import BatchNotes
    from millstream.engine.events.event_bus import EventBus


class SinkAheadOfCheckpoint(CheckpointMismatch):
    """A sink has batches of this checkpoint that the checkpoint does not know, or knows with other offsets."""


@dataclass
class SinkReconciliation:
    """One start of a query: its checkpoint compared with the ledgers of its sinks.

        sink: batches 0 … 7 of id A        checkpoint: id A, planned 7     same offsets of 7: continue
        sink: batches 0 … 7 of id A        checkpoint: id A, planned 5     restored, or copied: refused
        sink: batches 0 … 7 of id A        checkpoint: id B, fresh         rows would come twice: refused,
                                                                           unless rows replace rows by key
        sink: 0 … 7 of A, then 0 … 3 of B  checkpoint: id A                B took over meanwhile: refused
        sink: batches 0 … 4 of id A        checkpoint: id A, committed 7   the sink was restored: refused

    With `adopt` the sink's rows stay, and from here on this checkpoint writes. What a sink lacks stays missing.
    """

    query: str
    checkpoint: Checkpoint
    notes: BatchNotes
    events: EventBus
    adopt: bool = False
    waiting: Callable[[str], Collection[int]] = lambda _: ()
    """Returns the batches that are spooled for a sink, by its key."""
    remedy: Callable[[Sink, Sequence[int]], str] = lambda *_: ""
    """Suggests what to do about batches that a sink lacks."""
    adopted: dict[str, int] = field(default_factory=dict)
    """The last batch of each writer whose rows were adopted before."""
    committed: int | None = None
    """The last batch that was committed when the survey began."""
    since: dict[str, int] = field(default_factory=dict)
    """The first batch that a sink can have in its ledger, by the sink's key."""

    def survey(self, spark: SparkSession, stations: Iterable[tuple[Sink, Writer]]) -> bool:
        """Check every sink. False if this checkpoint needs another id, under which it takes over.

        Raises `CheckpointMismatch` for the first sink that disagrees, and `NotReady` if one cannot be reached.
        """
        self.adopted = adoption_log.last_adopted_batches(self.checkpoint.folder)
        self.committed = self.checkpoint.committed()
        sink_ahead = None
        for sink, writer in stations:
            if writer.has_ledger:
                # This is all that is known of a sink that is down. A sink that responds is asked below.
                name = writer.identity.sink
                self.since[name] = find_first_batch(self.checkpoint, sink, writer, self.committed)
            try:
                writer.verify_ledger(spark, LedgerVerifier(self, sink, writer, spark))
            except SinkAheadOfCheckpoint as error:
                conflict = sink.adoption_conflict(writer.identity.mode)
                if not self.adopt or conflict or not self.checkpoint.can_renew_id:
                    raise
                sink_ahead = error
        return sink_ahead is None


@dataclass(frozen=True)
class LedgerVerifier:
    """Verifies the ledger of one sink. Called once its writer can read the ledger."""

    reconciliation: SinkReconciliation
    sink: Sink
    writer: Writer
    spark: SparkSession

    def __call__(self, entries: Sequence[LedgerEntry]) -> None:
        """Raise `SinkAheadOfCheckpoint` or `CheckpointMismatch`, emit warnings, or record what is adopted."""
        identity, adopted = self.writer.identity, self.reconciliation.adopted
        own_entry = next((entry for entry in entries if entry.writer == identity.key), None)
        if own_entry is not None:
            self._check_own(own_entry)
        last_written = -1 if own_entry is None else own_entry.at
        others = [
            entry
            for entry in entries
            if entry.query_id != identity.query_id
            and not entry.query_id.startswith(BACKFILL)
            and entry.at > last_written
            and entry.batch > adopted.get(entry.writer, -1)
        ]
        if others:
            self._check_others(max(others, key=lambda entry: entry.at), others, fresh=own_entry is None)
        if own_entry is None and self._is_first_batch and not self.sink.is_rerun_idempotent(identity.mode):
            backfills = [
                entry
                for entry in entries
                if entry.query_id.startswith(BACKFILL) and entry.batch > adopted.get(entry.writer, -1)
            ]
            if backfills:
                self._check_backfills(max(backfills, key=lambda entry: entry.at), backfills)
        self._check_missing(own_entry)

    @property
    def _is_first_batch(self) -> bool:
        """Whether this checkpoint has yet to write its first batch here, so that all records are read again."""
        if isinstance(self.writer, SpoolingWriter) and not self.writer.has_begun:
            return True
        return self.reconciliation.checkpoint.committed() is None

    def _check_missing(self, own_entry: LedgerEntry | None) -> None:
        """Raise `CheckpointMismatch` if the sink lacks batches that the checkpoint has committed."""
        reconciliation, identity = self.reconciliation, self.writer.identity
        waiting = reconciliation.waiting(identity.sink)
        checkpoint, committed = reconciliation.checkpoint, reconciliation.committed
        missing = find_missing(checkpoint, self.sink, self.writer, own_entry, committed, waiting)
        if missing.batches:
            own_entry = self.writer.newest(self.spark)
            missing = find_missing(checkpoint, self.sink, self.writer, own_entry, committed, waiting)
        if missing.since is not None:
            reconciliation.since[identity.sink] = missing.since
        if not missing.batches:
            return
        sink, query = identity.sink, reconciliation.query
        lacks = f"sink '{sink}' lacks {missing} of query '{query}', which its checkpoint has committed"
        if identity.mode is OutputMode.COMPLETE:
            fix = "nothing, if the next batch may replace its rows; until then it shows an older result"
            self._warn(f"{lacks}: it was restored, or recreated", fix)
        elif not missing.is_certain:
            self._warn(
                f"{lacks}, unless they had no rows: it may have been restored, or recreated",
                f"see what it lacks: 'millstream backfill {reconciliation.query} --compare'",
            )
        elif reconciliation.adopt:
            folder = reconciliation.checkpoint.folder
            adoption_log.add_missing(folder, identity.sink, identity.key, missing.batches, now())
            reconciliation.events.emit(
                "adopted",
                reconciliation.query,
                sink=identity.sink,
                writer=identity.key,
                batch=missing.batches[-1],
                missing=format_batches(missing.batches),
            )
        else:
            raise CheckpointMismatch(
                f"{lacks} and will not be run again: the sink was restored or recreated",
                reconciliation.remedy(self.sink, missing.batches),
            )

    def _warn(self, what: str, fix: str) -> None:
        self.reconciliation.events.emit(
            "warning", self.reconciliation.query, sink=self.writer.identity.sink, what=what, fix=fix
        )

    def _check_own(self, own_entry: LedgerEntry) -> None:
        """Raise `SinkAheadOfCheckpoint` if the sink's last batch of this checkpoint differs from the checkpoint's."""
        reconciliation = self.reconciliation
        planned = reconciliation.checkpoint.planned()
        if planned is None or own_entry.batch > planned:
            raise self._sink_ahead_error(
                f"has batch {own_entry.batch} of query '{reconciliation.query}', which is not in the checkpoint: "
                f"the checkpoint is older than the sink, so the sink would skip rows"
            )
        if own_entry.note.contradicts(reconciliation.notes.planned(own_entry.batch)):
            raise self._sink_ahead_error(
                f"has batch {own_entry.batch} of query '{reconciliation.query}' with other offsets than the "
                "checkpoint: the checkpoint is a copy, or was restored, and the query then read other offsets"
            )

    def _sink_ahead_error(self, finding: str) -> SinkAheadOfCheckpoint:
        identity = self.writer.identity
        repeated_rows = (
            "rows that it reads again replace those in the sink"
            if self.sink.is_rerun_idempotent(identity.mode)
            else "rows that it reads again come twice"
        )
        restore = "restore the newest files in the folders offsets and commits of the checkpoint"
        adopt = f"; {self._adopt_command} continues from the position of the checkpoint, and {repeated_rows}"
        fix = f"{restore}{'' if self.sink.adoption_conflict(identity.mode) else adopt}; {AFRESH}"
        if not self.reconciliation.checkpoint.can_renew_id:
            fix = (
                f"{restore}; or give the query another checkpoint (queries.{self.reconciliation.query}.checkpoint), "
                "since --adopt cannot give one on an object store the new id that it needs"
            )
        return SinkAheadOfCheckpoint(f"sink '{identity.sink}' {finding}", fix)

    @property
    def _adopt_command(self) -> str:
        return f"'millstream run --adopt --select {self.reconciliation.query}'"

    def _check_others(self, last: LedgerEntry, others: Sequence[LedgerEntry], *, fresh: bool) -> None:
        """Adopt, report or refuse the rows of other checkpoints of this query."""
        reconciliation, identity = self.reconciliation, self.writer.identity
        conflict = self.sink.adoption_conflict(identity.mode)
        if reconciliation.adopt and not conflict:
            self._adopt(others)
            return
        order = (
            "this checkpoint has not written to it"
            if fresh
            else "that one has written to it since this checkpoint did"
        )
        message = (
            f"sink '{identity.sink}' has batches of query '{reconciliation.query}' from another checkpoint, up to "
            f"batch {last.batch}{_written_on(last)}, and {order}"
        )
        restore = f"put the checkpoint with id {last.query_id} back into {reconciliation.checkpoint.folder}"
        if self.sink.is_rerun_idempotent(identity.mode):
            reconciliation.events.emit(
                "warning",
                reconciliation.query,
                sink=identity.sink,
                what=f"{message}: rows are replaced as they are read again; until then, and for good if a source no "
                "longer has all its records, the rows may show less than before",
                fix=f"nothing, if this is intended; else {restore}",
            )
            return
        fixes = [
            restore,
            *([] if conflict else [f"keep its rows and add to them: {self._adopt_command}"]),
            f"empty it: {self.sink.clear_command()}",
            "write to another target",
        ]
        reason = conflict or "rows that this checkpoint reads again would be there twice"
        raise CheckpointMismatch(f"{message}: {reason}", "; or ".join(fixes))

    def _check_backfills(self, last: LedgerEntry, backfills: Sequence[LedgerEntry]) -> None:
        """Adopt or refuse the rows of backfills, in a sink without rows of this checkpoint."""
        if self.reconciliation.adopt:
            self._adopt(backfills)
            return
        sink = self.writer.identity.sink
        raise CheckpointMismatch(
            f"sink '{sink}' has rows of a backfill{_written_on(last)} for query "
            f"'{self.reconciliation.query}', and this checkpoint has not written to the sink yet: rows that the "
            f"query reads again would be in the sink twice",
            f"keep the rows, and let the query add its own: {self._adopt_command}; or empty the sink: "
            f"{self.sink.clear_command()}; or write to another target",
        )

    def _adopt(self, others: Sequence[LedgerEntry]) -> None:
        """Record in the checkpoint that these rows belong to it from here on."""
        reconciliation, sink = self.reconciliation, self.writer.identity.sink
        for entry in others:
            adoption_log.add(reconciliation.checkpoint.folder, sink, entry.writer, entry.batch, now())
            reconciliation.events.emit(
                "adopted", reconciliation.query, sink=sink, writer=entry.writer, batch=entry.batch
            )


def _written_on(entry: LedgerEntry) -> str:
    """Return when a batch was written, as a phrase, or an empty string if that is not known."""
    if not entry.at:
        return ""
    return f" of {datetime.fromtimestamp(entry.at / 1000, UTC):%Y-%m-%d %H:%M} UTC"
