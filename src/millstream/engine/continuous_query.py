"""Run a query with a continuous or real-time trigger. Spark's own sink writes its rows, without `foreachBatch`."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.integrity.temp_files import delete_partial_files
from millstream.checkpoint.remote.path import to_spark_path
from millstream.diagnostics.failure import NotReady
from millstream.engine.delivery.batch_metadata import rows_metric_columns
from millstream.engine.delivery.sink_writers import create_writer
from millstream.engine.events.event_bus import now
from millstream.engine.events.progress_listener import ROWS_OUT, extract_metrics
from millstream.engine.recovery.source_offsets import committed_offsets, list_origins
from millstream.engine.streaming_query import RunningQuery
from millstream.pipeline.graph import PipelineGraph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from millstream.checkpoint.folder import Offsets
    from millstream.pipeline.model import Pipeline

# The interval, in seconds, at which Spark reports an idle query that has batches.
_IDLE_SECONDS = 10.0


@dataclass
class FlowingQuery(RunningQuery):
    """A query with a continuous or real-time trigger, written by Spark's own sink for the sink's kind.

    Rows since the last checkpoint are written again after a crash, because nothing identifies them. So no sink has a
    ledger, and there are no dead letters. Spark reports nothing on continuous processing, so events are derived from
    the checkpoint whenever an epoch with rows is committed.
    """

    _committed_before_start: int | None = None
    """The newest epoch, or batch, that was committed before this start."""
    _last_offsets: Offsets | None = None
    """The end offsets of the last epoch that was looked at."""
    _last_reported_at: float = 0.0

    def start(self) -> None:
        """Start Spark's own sink. Raises the writer's exceptions and Spark's AnalysisException."""
        checkpoint = self._claim_checkpoint()
        query_id, source_origins = str(checkpoint.query_id()), list_origins(self.frame)
        ((key, entry),) = zip(self._sinks(), self.pipeline.queries[self.name].to, strict=True)
        sink = create_writer(self.pipeline, self.name, query_id, key, entry, self.events)
        self._committed_before_start = checkpoint.committed()
        self._last_offsets = (
            None if self._committed_before_start is None else checkpoint.offsets(self._committed_before_start)
        )
        self._last_reported_at = time.monotonic()
        try:
            sink.open(self.spark, self.frame.schema)
            self._record(checkpoint, query_id, source_origins)
            rows = self.frame
            if self.trigger.real_time:
                rows = rows.observe(ROWS_OUT, *rows_metric_columns(rows.schema, content=False))
            self.handle = self._start_stream(sink.flow(rows), checkpoint)
        finally:
            sink.close()
        self.events.emit(
            "query_started",
            self.name,
            id=self.handle.id,
            run_id=self.handle.runId,
            batch=self._committed_before_start,
            trigger=str(self.trigger),
            trigger_seconds=self.trigger.interval_seconds,
            checkpoint_seconds=self.trigger.checkpoint_seconds,
            sources=[origin.name for origin in source_origins],
            sinks=[key],
            offsets=committed_offsets(checkpoint, self._committed_before_start),
        )

    def _start_stream(self, stream_writer: DataStreamWriter, checkpoint: Checkpoint) -> Any:
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.pipeline.pool(self.name))
        stream_writer = stream_writer.queryName(self.name).outputMode(
            self.pipeline.queries[self.name].output_mode.value
        )
        stream_writer = stream_writer.option("checkpointLocation", to_spark_path(checkpoint.folder)).trigger(
            **self.trigger.options()
        )
        delete_partial_files(checkpoint.folder)
        return stream_writer.start()

    @property
    def has_delivered(self) -> bool:
        """Whether an epoch, or a batch, has been committed since the start."""
        # A remote checkpoint that cannot be read is asked again.
        with suppress(OSError):
            return Checkpoint(self._folder()).committed() != self._committed_before_start
        return False

    def unfinished(self) -> None:
        """Return None, because an interrupted epoch has no number and no end offsets to read it again."""
        return

    def look(self) -> None:
        """Emit an event for the epochs with rows that were committed since the last call."""
        super().look()
        if not self.trigger.continuous:
            return
        checkpoint, previous, clock_time = Checkpoint(self._folder()), self._last_offsets, time.monotonic()
        try:
            newest = checkpoint.committed()
            if newest is None or (previous is not None and newest == previous.batch_id):
                return
            ends = checkpoint.offsets(newest)
        except OSError:
            # A remote checkpoint that cannot be read is asked again.
            return
        if ends is None:
            return
        self._last_offsets, seconds = ends, clock_time - self._last_reported_at
        if previous is not None and previous.sources == ends.sources:
            if seconds > _IDLE_SECONDS:
                self._last_reported_at = clock_time
                self.events.emit("idle", self.name)
            return
        self._last_reported_at = clock_time
        sources = list(_source_progress(previous, ends))
        rows = sum(source["numInputRows"] for source in sources)
        rate = rows / seconds if seconds and previous else None
        report = {
            "batchId": newest,
            "timestamp": now(),
            "numInputRows": rows,
            "inputRowsPerSecond": rate,
            "processedRowsPerSecond": rate,
            "sources": sources,
        }
        self.events.emit("batch_committed", self.name, **extract_metrics(report))

    def ask_to_end(self) -> None:
        """End at once, since an epoch or batch may take minutes. Its rows are read again at the next start."""
        if not self.has_ended():
            self.stop()


def _source_progress(starts: Offsets | None, ends: Offsets) -> list[dict[str, Any]]:
    """Describe what each source read between two epochs, in Spark's progress format. Rows are counted by offsets."""
    sources = []
    for index, end in enumerate(ends.sources):
        start = starts.sources[index] if starts else None
        sources.append(
            {
                "startOffset": json.loads(start) if start else None,
                "endOffset": json.loads(end) if end else None,
                "numInputRows": _count_records(start, end),
            }
        )
    return sources


def _count_records(start: str | None, end: str | None) -> int:
    """Return the number of records between two Kafka offsets, or 0 before the first epoch has reported its start."""
    return (
        0
        if start is None or end is None
        else max(0, _sum_offsets(json.loads(end)) - _sum_offsets(json.loads(start)))
    )


def _sum_offsets(offsets: object) -> int:
    """Add up all numbers in nested objects."""
    if isinstance(offsets, dict):
        return sum(map(_sum_offsets, offsets.values()))
    return offsets if isinstance(offsets, int) else 0


def require_enough_cores(
    spark: SparkSession, pipeline: Pipeline, queries: Sequence[str], probed: Mapping[str, Mapping[str, str]]
) -> None:
    """Raise `NotReady` if the endless tasks, one for each partition of a topic, leave no core free."""
    graph = PipelineGraph.of(pipeline)
    continuous = [name for name in queries if pipeline.trigger(name).flows]
    partitions = sum(
        int(value)
        for name in continuous
        for source in graph.sources_of(name)
        for key, value in (() if pipeline.sources[source].static else probed.get(source, {}).items())
        if key.startswith("partitions.")
    )
    needed = partitions + (len(continuous) < len(queries))
    cores = spark.sparkContext.defaultParallelism
    if continuous and needed > cores:
        raise NotReady(
            f"query '{continuous[0]}' runs an endless task for each partition and needs {needed} cores; "
            f"Spark has {cores}",
            f"set 'spark.master: local[{needed}]' under 'spark', or run fewer queries with --select",
        )
