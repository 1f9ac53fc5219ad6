"""Find the record that makes a batch fail, by running halves of the batch again until one record is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.checkpoint import metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.api.values.offsets import OffsetRange
from millstream.diagnostics.failure import CheckpointError
from millstream.engine.failure_classifier import FailureKind, classify
from millstream.frames.build_views import build_frames
from millstream.pipeline.graph import PipelineGraph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry

# A batch of a million records takes 21 halvings, each with up to two attempts. The search ends after SECONDS, because
# it only improves the message about a query that has ended already.
TRIES, SECONDS = 64, 60.0
# The number of characters of a value that is shown.
SHOWN = 200

Trial = Callable[["DataFrame"], None]
"""Runs rows without storing them, and raises the error that they cause."""


@dataclass(frozen=True)
class PoisonRange:
    """The smallest part of a batch that was found to fail by itself."""

    reads: tuple[str, ...]
    """A description of each piece: a partition with its offset, or a file."""
    value: str | None
    """The beginning of the record's value, if the part is one record of a topic."""
    reason: str
    """The error with which the part fails."""


def compute_rows(frame: DataFrame) -> None:
    """Compute the rows and discard them. This tries everything before the sinks."""
    frame.write.format("noop").mode("overwrite").save()


def find_poison_record(
    spark: SparkSession,
    pipeline: Pipeline,
    query: str,
    batch: int,
    trials: tuple[Trial, ...] = (compute_rows,),
) -> PoisonRange | None:
    """Find the smallest part of a batch that fails by itself in one of the trials, or None if there is none.

    Nothing is written and no state is changed: views are computed over the part alone, as a batch. A failure that
    needs other records or state is therefore not found. Reads the source again, within `SECONDS` and `TRIES`.
    """
    batch_input = _read_batch_input(pipeline, query, batch)
    if batch_input is None:
        return None
    name, offsets = batch_input
    # Use a separate session, so that the views of other running queries keep their names.
    search = _Search(spark.newSession(), _as_tables(pipeline), query, name, trials)
    try:
        return search.narrow(offsets)
    except _SearchStoppedError:
        return None


def _read_batch_input(pipeline: Pipeline, query: str, batch: int) -> tuple[str, OffsetRange] | None:
    """Return a query's only stream and the batch's range of it. None for several, or an unreadable checkpoint."""
    streams = [
        source
        for source in PipelineGraph.of(pipeline).sources_of(query)
        if not pipeline.sources[source].static
    ]
    folder = pipeline.checkpoint_folder(query)
    if len(streams) != 1:
        return None
    checkpoint = Checkpoint(folder)
    try:
        planned, record = checkpoint.offsets(batch), metadata.read(checkpoint.folder)
        previous = checkpoint.offsets(batch - 1) if batch else None
        if planned is None or record is None or len(planned.sources) != 1 or planned.sources[0] is None:
            return None
        start = previous.sources[0] if previous and previous.sources else None
        files = checkpoint.files(0, start, planned.sources[0])
        return streams[0], OffsetRange(
            start or (None if files else checkpoint.first(0)), planned.sources[0], files
        )
    except (CheckpointError, OSError):
        # A damaged file here must not hide the reason why the query failed.
        return None


def _as_tables(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with sources read as tables, so that its views are batch frames."""
    static = {name: entry.model_copy(update={"static": True}) for name, entry in pipeline.sources.items()}
    return pipeline.model_copy(update={"sources": static})


class _SearchStoppedError(Exception):
    """The source cannot be read, or a service is down."""


@dataclass
class _Search:
    """One search through the records of one source."""

    session: SparkSession
    pipeline: Pipeline
    query: str
    source: str
    trials: tuple[Trial, ...]

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + SECONDS
        self._tries_left = TRIES

    def narrow(self, offsets: OffsetRange) -> PoisonRange | None:
        """Return the smallest part that fails by itself, or None if the whole does not fail."""
        entry = self.pipeline.sources[self.source]
        part, trial, reason = offsets, *self._first_failing_trial(offsets)
        if trial is None:
            return None
        while halves := entry.source.halves(part):
            failing = next(
                ((half, message) for half in halves if (message := self._try_part(half, trial)) is not None),
                None,
            )
            if failing is None:
                break
            part, reason = failing
        return PoisonRange(
            tuple(entry.source.describe_offsets(part)), self._record_value(entry, part), reason
        )

    def _first_failing_trial(self, offsets: OffsetRange) -> tuple[Trial | None, str]:
        """Return the trial in which the whole fails, and its error."""
        for trial in self.trials:
            if (message := self._try_part(offsets, trial)) is not None:
                return trial, message
        return None, ""

    def _try_part(self, offsets: OffsetRange, trial: Trial) -> str | None:
        """Return the error of a part, or None. Also None if no time is left to try."""
        if not self._tries_left or time.monotonic() > self._deadline:
            return None
        self._tries_left -= 1
        try:
            trial(self._query_rows(offsets))
        except Exception as error:
            # Any error of the user's code or the sink is the one searched for, unless a service is down.
            failure = classify(None, error)
            if failure.cause is not FailureKind.DEFECT:
                raise _SearchStoppedError from error
            return failure.message
        return None

    def _query_rows(self, offsets: OffsetRange) -> DataFrame:
        """Return the rows that the query passes to its sinks, computed from these records alone."""

        def reader(name: str, entry: SourceEntry) -> DataFrame:
            if name == self.source:
                raw = entry.source.read_range(self.session, offsets, entry.ddl)
                if raw is None:
                    raise _SearchStoppedError
                return raw
            if not entry.source.can_read_once:
                # A source of another query. An empty table is enough to create the views that read it.
                return self.session.createDataFrame([], entry.source.columns or entry.ddl or "value STRING")
            return entry.source.read(self.session, static=True, schema=entry.ddl)

        frames = build_frames(self.session, self.pipeline, reader, queries=[self.query])
        return frames[self.pipeline.reads(self.query)]

    def _record_value(self, entry: SourceEntry, offsets: OffsetRange) -> str | None:
        """Return the beginning of the value of the one remaining record, without terminal control characters."""
        raw = entry.source.read_range(self.session, offsets, entry.ddl) if entry.source.has_payload else None
        if raw is None or entry.source.halves(offsets):
            return None
        rows = raw.select(F.substring("value", 1, SHOWN), F.length("value")).take(2)
        if len(rows) != 1:
            return None
        value, length = rows[0]
        if value is None:
            return "null"
        return ascii(bytes(value).decode("utf-8", "backslashreplace")) + (" …" if length > SHOWN else "")
