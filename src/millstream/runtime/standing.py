"""Do a checkpoint and the sinks of its query tell one story? Asked at each start, before a sink is claimed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.checkpoint import adopted
from millstream.checkpoint.wrong import AFRESH
from millstream.connectors.remembered import BACKFILL
from millstream.diagnostics.failure import Unfit
from millstream.runtime.events import now

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession

    from millstream.checkpoint.folder import Checkpoint
    from millstream.connectors.remembered import Entry
    from millstream.connectors.sink import Sink, Writer
    from millstream.runtime.events import Events
    from millstream.runtime.notes import Notes


class Behind(Unfit):
    """A sink holds batches of this very checkpoint that it does not know, or knows otherwise."""


@dataclass
class Standing:
    """One start of a query: its checkpoint held against what its sinks remember.

        sink: batches 0 … 7 of id A        checkpoint: id A, planned 7     the same offsets of 7: go on
        sink: batches 0 … 7 of id A        checkpoint: id A, planned 5     taken back, or copied: refused
        sink: batches 0 … 7 of id A        checkpoint: id B, fresh         rows would come twice: refused,
                                                                           unless rows replace rows by key
        sink: 0 … 7 of A, then 0 … 3 of B  checkpoint: id A                B took over meanwhile: refused

    With `adopt` what is there stays, and from here on this checkpoint writes.
    """

    query: str
    checkpoint: Checkpoint
    notes: Notes
    events: Events
    adopt: bool = False
    taken: dict[str, int] = field(default_factory=dict)
    """The last batch of each writer that was taken over before."""

    def survey(self, spark: SparkSession, stations: Iterable[tuple[Sink, Writer]]) -> bool:
        """Ask every sink; False when this checkpoint needs another id, under which it takes over.

        Raises `Unfit` for the first sink that tells another story, and `NotReady` when one is out of reach.
        """
        self.taken = adopted.last(self.checkpoint.folder)
        behind = None
        for sink, writer in stations:
            try:
                writer.answer(spark, Judge(self, sink, writer))
            except Behind as found:
                if not self.adopt or sink.kept_apart(writer.identity.mode):
                    raise
                behind = found
        return behind is None


@dataclass(frozen=True)
class Judge:
    """Looks at what one sink remembers; called once its writer can ask it."""

    standing: Standing
    sink: Sink
    writer: Writer

    def __call__(self, entries: Sequence[Entry]) -> None:
        """Raises `Behind` or `Unfit`; tells what is no more than a warning, and keeps what is adopted."""
        identity, taken = self.writer.identity, self.standing.taken
        own = next((one for one in entries if one.writer == identity.key), None)
        if own is not None:
            self._mine(own)
        since = -1 if own is None else own.at
        others = [
            one
            for one in entries
            if one.query_id != identity.query_id
            and not one.query_id.startswith(BACKFILL)
            and one.at > since
            and one.batch > taken.get(one.writer, -1)
        ]
        if others:
            self._theirs(max(others, key=lambda one: one.at), others, fresh=own is None)

    def _mine(self, own: Entry) -> None:
        """Raises `Behind` when the last batch of this checkpoint is not what it says itself."""
        standing = self.standing
        planned = standing.checkpoint.planned()
        if planned is None or own.batch > planned:
            raise self._behind(
                f"holds batch {own.batch} of query '{standing.query}', which its checkpoint has not planned: the "
                "checkpoint is older than the sink, and rows would be passed over"
            )
        if own.note.contradicts(standing.notes.planned(own.batch)):
            raise self._behind(
                f"holds batch {own.batch} of query '{standing.query}' with other offsets than its checkpoint has: "
                "the checkpoint is a copy that went another way, or was taken back and planned anew"
            )

    def _behind(self, said: str) -> Behind:
        identity = self.writer.identity
        again = (
            "what it reads again replaces what is there"
            if self.sink.converges(identity.mode)
            else "rows that it reads again come twice"
        )
        adopt = f"; {self._command} goes on from where the checkpoint stands, and {again}"
        return Behind(
            f"sink '{identity.sink}' {said}",
            "put the newest files back into the checkpoint's offsets and commits"
            f"{'' if self.sink.kept_apart(identity.mode) else adopt}; {AFRESH}",
        )

    @property
    def _command(self) -> str:
        return f"'millstream run --adopt --select {self.standing.query}'"

    def _theirs(self, last: Entry, others: Sequence[Entry], *, fresh: bool) -> None:
        """Rows of other checkpoints of this query: taken over, told, or refused."""
        standing, identity = self.standing, self.writer.identity
        apart = self.sink.kept_apart(identity.mode)
        if standing.adopt and not apart:
            for one in others:
                adopted.add(standing.checkpoint.folder, identity.sink, one.writer, one.batch, now())
                standing.events.tell(
                    "adopted", standing.query, sink=identity.sink, writer=one.writer, batch=one.batch
                )
            return
        came = (
            "this one has written nothing to it" if fresh else "that one has written to it since this one did"
        )
        told = (
            f"sink '{identity.sink}' holds batches of query '{standing.query}' from another checkpoint, up to batch "
            f"{last.batch}{_on(last)}, and {came}"
        )
        back = f"put the checkpoint with id {last.query_id} back into {standing.checkpoint.folder}"
        if self.sink.converges(identity.mode):
            standing.events.tell(
                "warning",
                standing.query,
                sink=identity.sink,
                what=f"{told}: rows are replaced as they are read again; until then, and for good where a source has "
                "not kept all its records, they show less than what was there",
                fix=f"nothing, if that is meant; else {back}",
            )
            return
        ways = [
            back,
            *([] if apart else [f"keep what is there and add to it: {self._command}"]),
            f"empty it: {self.sink.clearing()}",
            "write to another target",
        ]
        why = apart or "rows that it reads again would be there twice"
        raise Unfit(f"{told}: {why}", "; or ".join(ways))


def _on(entry: Entry) -> str:
    """When a batch was written, in words; nothing where that is not known."""
    if not entry.at:
        return ""
    return f" of {datetime.fromtimestamp(entry.at / 1000, UTC):%Y-%m-%d %H:%M} UTC"
