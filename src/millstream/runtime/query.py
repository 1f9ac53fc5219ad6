"""One query from start to end: its writers opened, started in a pool of its own, stopped after its batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.checkpoint import record as records
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.leftovers import sweep
from millstream.checkpoint.lock import taken_over
from millstream.connectors.remembered import nothing
from millstream.diagnostics.failure import CannotGoOn
from millstream.pipeline.graph import Graph
from millstream.pipeline.model import OnError
from millstream.runtime.bounded import ending
from millstream.runtime.deferred import DeferredWriter, writer
from millstream.runtime.delivery import Delivery
from millstream.runtime.gaps import named, passed
from millstream.runtime.hand import Hand
from millstream.runtime.letters import Letters
from millstream.runtime.notes import Notes, counted
from millstream.runtime.origins import Origin, origins
from millstream.runtime.poison import find, run
from millstream.runtime.probing import Probing
from millstream.runtime.progress import ROWS_OUT
from millstream.runtime.recording import record, sink_keys
from millstream.runtime.reports import reported
from millstream.runtime.soundness import unplanned
from millstream.runtime.standing import Standing
from millstream.runtime.unfinished import unfinished

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.connectors.sink import Sink, Writer
    from millstream.pipeline.model import Pipeline
    from millstream.runtime.events import Events
    from millstream.runtime.gaps import Missing
    from millstream.runtime.poison import Poison
    from millstream.runtime.unfinished import Unfinished
    from millstream.spec.trigger import Trigger

# What Spark says it does while it asks a source how far it reaches.
_ASKING = "Getting offsets from "
_IDLE = "Waiting for "


@dataclass
class RunningQuery:
    """A query of the spec and, between `start` and its end, Spark's handle of it.

    `trigger` may differ from the spec's: a run until caught up reads what is there and ends.
    """

    spark: SparkSession
    pipeline: Pipeline
    name: str
    frame: DataFrame
    trigger: Trigger
    events: Events
    probed: dict[str, dict[str, str]] = field(default_factory=dict)
    handle: StreamingQuery | None = None
    delivery: Delivery | None = None
    gaps: tuple[Missing, ...] = ()
    """Gaps that this start passes over, with sources that let it; none for any other start."""
    following: RunningQuery | None = None
    """The same query with sources that stop at a gap, to be started once these are passed."""
    _asked: StreamingQuery | None = None
    """The handle that was asked to end."""
    adopt: bool = False
    """Take over what sinks hold of other checkpoints of this query; once."""
    notes: Notes | None = None
    """What its sinks are to remember of each batch, from its start on."""
    _hand: Hand | None = None

    def start(self) -> None:
        """Open the writers and start. Raises what a writer raises, and Spark's AnalysisException."""
        checkpoint = self._own()
        writers, notes = self._surveyed(checkpoint)
        query_id = str(checkpoint.query_id())
        planned, committed = checkpoint.planned(), checkpoint.committed()
        read = origins(self.frame)
        self.delivery = Delivery(
            query=self.name,
            writers=writers,
            letters=self._letters(query_id, checkpoint, read),
            events=self.events,
            notes=notes,
            replayed=planned if planned != committed else None,
            probing=Probing(self.name, [one for one in writers.values() if isinstance(one, DeferredWriter)]),
        )
        try:
            for writer in writers.values():
                writer.open(self.spark, self.frame.schema)
            if self.delivery.letters is not None:
                self.delivery.letters.keeper.open(self.spark)
            unplanned(self.name, writers, planned)
            self._record(checkpoint, query_id, read)
            self.handle = self._start(checkpoint)
        except BaseException:
            self.delivery.close()
            raise
        self.delivery.begin(self.handle)
        if self.delivery.probing is not None:
            self.delivery.probing.start(self.spark)
        self.events.tell(
            "query_started",
            self.name,
            id=self.handle.id,
            run_id=self.handle.runId,
            batch=committed,
            trigger=str(self.trigger),
            sources=[origin.name for origin in read],
            sinks=list(self._sinks()),
        )

    def _own(self) -> Checkpoint:
        """Its checkpoint, with an id. Raises `CannotGoOn` when another run has taken it over."""
        checkpoint = Checkpoint(self._folder())
        if other := taken_over(checkpoint.folder):
            # After an outage that was a standstill of this process: a start would fence the other run out.
            raise CannotGoOn(
                f"checkpoint {checkpoint.folder} has been taken over by {other}",
                "stop this run and keep the other; two runs of one query never both write",
            )
        checkpoint.ensure_id()
        planned = checkpoint.planned()
        newest = None if planned is None or self.trigger.continuous else checkpoint.offsets(planned)
        if newest is not None and newest.epoch:
            raise CannotGoOn(
                f"checkpoint {checkpoint.folder} was written under a continuous trigger, "
                "and Spark starts no batch from it",
                "keep the continuous trigger and run without --until-caught-up, "
                "or give the query another checkpoint",
            )
        return checkpoint

    def _record(self, checkpoint: Checkpoint, query_id: str, read: list[Origin]) -> None:
        """Keep beside the checkpoint what it is made by."""
        made = record(self.spark, self.pipeline, self.name, query_id, self.frame, read, self.probed)
        records.write(checkpoint.folder, made)

    def _surveyed(self, checkpoint: Checkpoint) -> tuple[dict[str, Writer], Notes]:
        """The writers, once their sinks and the checkpoint tell one story. Raises `Unfit` where they do not."""
        while True:
            query_id = str(checkpoint.query_id())
            self.notes = notes = Notes(checkpoint, query_id)
            writers = self._writers(query_id)
            notes.content = any(writer.sums for writer in writers.values())
            standing = Standing(self.name, checkpoint, notes, self.events, adopt=self.adopt)
            sinks = [(sink, writers[key]) for key, sink in self._sinks().items() if key in writers]
            fits = False
            try:
                fits = standing.survey(self.spark, sinks)
            finally:
                for one in () if fits else writers.values():
                    one.close()
            if fits:
                self.adopt = False
                return writers, notes
            checkpoint.renew_id()

    def _start(self, checkpoint: Checkpoint) -> StreamingQuery:
        # A pool a query, unless the spec says otherwise: a long batch leaves the others their share of the cores.
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.pipeline.pool(self.name))
        mode = self.pipeline.queries[self.name].output_mode
        figures = counted(self.frame.schema, content=self.notes is not None and self.notes.content)
        rows = self.frame.observe(ROWS_OUT, *figures)
        self._hand = Hand(self.delivery)
        writer = rows.writeStream.queryName(self.name).outputMode(mode.value).foreachBatch(self._hand)
        writer = writer.option("checkpointLocation", str(checkpoint.folder))
        if options := self.trigger.options():
            writer = writer.trigger(**options)
        sweep(checkpoint.folder)
        with ending(self.spark, self.pipeline, self.name, self.trigger):
            return writer.start()

    def _folder(self) -> Path:
        folder = self.pipeline.checkpoint(self.name).local
        assert folder is not None, "locked, and so on this machine"
        return folder

    def _sinks(self) -> dict[str, Sink]:
        """The sinks by their keys."""
        to = self.pipeline.queries[self.name].to
        return {key: one.sink for key, one in zip(sink_keys(self.pipeline, self.name), to, strict=True)}

    def _writers(self, query_id: str) -> dict[str, Writer]:
        """The writer of each sink; those that may set a batch aside come last, so that nobody waits for them."""
        query = self.pipeline.queries[self.name]
        found = zip(sink_keys(self.pipeline, self.name), query.to, strict=True)
        ordered = sorted(found, key=lambda one: one[1].on_error is OnError.DEAD_LETTER)
        return {
            key: writer(self.pipeline, self.name, query_id, key, entry, self.events, self.notes or nothing)
            for key, entry in ordered
        }

    def _letters(self, query_id: str, checkpoint: Checkpoint, origins: list[Origin]) -> Letters | None:
        """The query's dead letters, when one of its sources or views asks for them."""
        read = [*(one.name for one in origins if one.name), *Graph.of(self.pipeline).views(self.name)]
        asked = any(self.pipeline.sets_aside(name) for name in read)
        return Letters.of(self.pipeline, self.name, query_id, checkpoint, origins) if asked else None

    def look(self) -> None:
        """Asked again and again while it runs: tell what Spark does not tell by itself. Here that is nothing."""

    @property
    def delivered(self) -> bool:
        """Has anything reached its sinks for good since its start?"""
        return self.delivery is not None and self.delivery.delivered > 0

    @property
    def active(self) -> bool:
        """Is Spark running it?"""
        return self.handle is not None and bool(self.handle.isActive)

    @property
    def idle(self) -> bool:
        """Does it wait for rows, or for its next trigger?"""
        return self.handle is not None and str(self.handle.status["message"]).startswith(_IDLE)

    def past_gaps(self) -> bool:
        """Has a batch been committed that left behind the gaps it was started for?"""
        return bool(self.gaps) and self.delivered and passed(Checkpoint(self._folder()), self.gaps)

    def unfinished(self) -> Unfinished | None:
        """The batch it was in, once it has failed; None when it failed between batches."""
        return unfinished(self.pipeline, self.name)

    def poison(self, batch: int) -> Poison | None:
        """The smallest part of a batch that fails by itself, in the views or at a sink; None where none is found."""
        writers = self.delivery.writers.values() if self.delivery is not None else ()
        try:
            return find(self.spark, self.pipeline, self.name, batch, (run, *(one.trial for one in writers)))
        finally:
            for one in writers:
                one.close()

    def lost(self) -> CannotGoOn | None:
        """Which records its next batch lacks, asked of the sources; None when none is known to be gone."""
        return named(self.pipeline, self.name)

    def waits_for(self) -> str | None:
        """The source whose newest offsets Spark is asking for at this moment, or None.

        An answer takes milliseconds. A broker that is away is asked for a minute and more before Spark gives up,
        and all that time the query looks alive.
        """
        if self.handle is None:
            return None
        said = str(self.handle.status["message"])
        return said.removeprefix(_ASKING) if said.startswith(_ASKING) else None

    def settle(self) -> None:
        """Wait until Spark has reported the last batch: its listeners are a little behind the query."""
        reported(self.spark)

    def ask_to_end(self) -> None:
        """Let the batch in progress finish and be committed, then end; returns at once. Ask until it has ended.

        Spark's own `stop()` interrupts the batch. Its loop asks before each trigger whether it is still active, so
        setting that state lets it leave by itself; one that waits for its next trigger, which may be far, has to be
        stopped. That is for a later call: a batch that began while the state was set is at work by then.
        """
        if self.handle is None or self.ended():
            return
        stream = self.handle._jsq.streamingQuery()
        if self._asked is not self.handle:
            self._asked = self.handle
            stream.state().set(_terminated(self.spark))
        elif not stream.status().isTriggerActive():
            self.handle.stop()

    def ended(self) -> bool:
        """Has its thread ended?"""
        return self.handle is None or not self.handle._jsq.streamingQuery().queryExecutionThread().isAlive()

    def stop(self) -> None:
        """Stop at once; a batch in progress is interrupted and comes again at the next start."""
        if self.handle is not None:
            self.handle.stop()

    def close(self) -> None:
        """Let go of the writers, and of what Spark planned."""
        if self.delivery is not None:
            self.delivery.close()
        if self._hand is not None:
            self._hand.let_go()


def _terminated(spark: SparkSession) -> Any:
    """Spark's TERMINATED state of a stream."""
    return getattr(spark._jvm, "org.apache.spark.sql.execution.streaming.runtime.TERMINATED$").__getattr__(
        "MODULE$"
    )
