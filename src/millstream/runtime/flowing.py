"""A query whose rows pass one by one: Spark's own sink takes them, and there are no batches."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.leftovers import sweep
from millstream.diagnostics.failure import NotReady
from millstream.pipeline.graph import Graph
from millstream.runtime.deferred import writer
from millstream.runtime.events import now
from millstream.runtime.notes import counted
from millstream.runtime.origins import origins
from millstream.runtime.progress import ROWS_OUT, figures
from millstream.runtime.query import RunningQuery

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from millstream.checkpoint.folder import Offsets
    from millstream.pipeline.model import Pipeline

# Spark tells of an idle query as often, in seconds, where it has batches.
_IDLE = 10.0


@dataclass
class FlowingQuery(RunningQuery):
    """A query with a continuous or real-time trigger, written by Spark's own sink of its one kind.

    Nothing knows a row after a crash: those since the last checkpoint are written again. So no sink remembers
    anything, and no record is set aside. Of continuous processing Spark reports nothing; what is told comes from
    the checkpoint, whenever an epoch with rows is committed.
    """

    _begun: int | None = None
    """The newest epoch, or batch, that was committed before this start."""
    _told: Offsets | None = None
    """Where the newest epoch that was looked at ended."""
    _told_at: float = 0.0

    def start(self) -> None:
        """Start Spark's own sink. Raises what a writer raises, and Spark's AnalysisException."""
        checkpoint = self._own()
        query_id, read = str(checkpoint.query_id()), origins(self.frame)
        ((key, entry),) = zip(self._sinks(), self.pipeline.queries[self.name].to, strict=True)
        sink = writer(self.pipeline, self.name, query_id, key, entry, self.events)
        self._begun = checkpoint.committed()
        self._told = None if self._begun is None else checkpoint.offsets(self._begun)
        self._told_at = time.monotonic()
        try:
            sink.open(self.spark, self.frame.schema)
            self._record(checkpoint, query_id, read)
            rows = self.frame
            if self.trigger.real_time:
                rows = rows.observe(ROWS_OUT, *counted(rows.schema, content=False))
            self.handle = self._flow(sink.flow(rows), checkpoint)
        finally:
            sink.close()
        self.events.tell(
            "query_started",
            self.name,
            id=self.handle.id,
            run_id=self.handle.runId,
            batch=self._begun,
            trigger=str(self.trigger),
            sources=[origin.name for origin in read],
            sinks=[key],
        )

    def _flow(self, made: DataStreamWriter, checkpoint: Checkpoint) -> Any:
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.pipeline.pool(self.name))
        made = made.queryName(self.name).outputMode(self.pipeline.queries[self.name].output_mode.value)
        made = made.option("checkpointLocation", str(checkpoint.folder)).trigger(**self.trigger.options())
        sweep(checkpoint.folder)
        return made.start()

    @property
    def delivered(self) -> bool:
        """Has an epoch, or a batch, been committed since its start?"""
        return Checkpoint(self._folder()).committed() != self._begun

    def unfinished(self) -> None:
        """None: what was under way has no number and no end that could be read again."""
        return

    def look(self) -> None:
        """Tell of the epochs with rows that were committed since the last look."""
        if not self.trigger.continuous:
            return
        checkpoint, before, at = Checkpoint(self._folder()), self._told, time.monotonic()
        newest = checkpoint.committed()
        if newest is None or (before is not None and newest == before.batch_id):
            return
        ends = checkpoint.offsets(newest)
        if ends is None:
            return
        self._told, seconds = ends, at - self._told_at
        if before is not None and before.sources == ends.sources:
            if seconds > _IDLE:
                self._told_at = at
                self.events.tell("idle", self.name)
            return
        self._told_at = at
        sources = list(_read(before, ends))
        rows = sum(source["numInputRows"] for source in sources)
        rate = rows / seconds if seconds and before else None
        report = {
            "batchId": newest,
            "timestamp": now(),
            "numInputRows": rows,
            "inputRowsPerSecond": rate,
            "processedRowsPerSecond": rate,
            "sources": sources,
        }
        self.events.tell("batch_committed", self.name, **figures(report))

    def ask_to_end(self) -> None:
        """End at once: an epoch or a batch in progress may be minutes long. Its rows come again at the next start."""
        if not self.ended():
            self.stop()


def _read(starts: Offsets | None, ends: Offsets) -> list[dict[str, Any]]:
    """What each source gave between two epochs, in the words of Spark's progress; rows are told by offsets."""
    found = []
    for number, end in enumerate(ends.sources):
        start = starts.sources[number] if starts else None
        found.append(
            {
                "startOffset": json.loads(start) if start else None,
                "endOffset": json.loads(end) if end else None,
                "numInputRows": _distance(start, end),
            }
        )
    return found


def _distance(start: str | None, end: str | None) -> int:
    """How many records lie between two offsets of Kafka; 0 before the first epoch has told where it began."""
    return 0 if start is None or end is None else max(0, _sum(json.loads(end)) - _sum(json.loads(start)))


def _sum(offsets: object) -> int:
    """All numbers in a nest of objects."""
    if isinstance(offsets, dict):
        return sum(map(_sum, offsets.values()))
    return offsets if isinstance(offsets, int) else 0


def roomy(
    spark: SparkSession, pipeline: Pipeline, queries: Sequence[str], probed: Mapping[str, Mapping[str, str]]
) -> None:
    """Raise `NotReady` when tasks that never end, one for each partition of a topic, would leave no core."""
    graph = Graph.of(pipeline)
    flowing = [name for name in queries if pipeline.trigger(name).flows]
    held = sum(
        int(told)
        for name in flowing
        for source in graph.upstream(name)
        for key, told in (() if pipeline.sources[source].static else probed.get(source, {}).items())
        if key.startswith("partitions.")
    )
    needed = held + (len(flowing) < len(queries))
    cores = spark.sparkContext.defaultParallelism
    if flowing and needed > cores:
        raise NotReady(
            f"query '{flowing[0]}' runs a task without end for each partition, and Spark has {cores} cores "
            f"where {needed} are needed",
            f"write 'spark.master: local[{needed}]' under 'spark', or run fewer queries with --select",
        )
