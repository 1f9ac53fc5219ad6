"""Read the input of a backfill: everything that the sources contain, up to the last batch of the live query."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.checkpoint import metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.api.values.offsets import OffsetRange
from millstream.diagnostics.failure import CheckpointError, InvalidInput
from millstream.frames.build_views import read_source
from millstream.frames.decode import DECODED, REASON, decode_rows
from millstream.pipeline.graph import PipelineGraph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.folder import Offsets
    from millstream.checkpoint.metadata import QueryMetadata
    from millstream.connectors.api.values.event_time_range import EventTimeRange
    from millstream.frames.build_views import Reader
    from millstream.pipeline.model import Pipeline, SourceEntry


@dataclass(frozen=True)
class QueryProgress:
    """Progress of a query: its last committed batch. Empty before the first batch."""

    batch: int | None = None
    watermark: datetime | None = None
    ends: Mapping[str, OffsetRange | None] | None = None
    """For each source the range it has read; None for a source from which it has read nothing."""


def read_progress(pipeline: Pipeline, query: str) -> QueryProgress:
    """Read a query's progress from its checkpoint, without a lock because batches are only ever added."""
    folder = pipeline.checkpoint_folder(query)
    checkpoint = Checkpoint(folder)
    batch = checkpoint.committed()
    offsets = checkpoint.offsets(batch) if batch is not None else None
    record = metadata.read(folder)
    if offsets is None:
        return QueryProgress()
    ends = {} if record is None else _ends(checkpoint, record, offsets)
    return QueryProgress(batch, datetime.fromtimestamp(offsets.watermark / 1000, UTC), ends)


def _ends(checkpoint: Checkpoint, record: QueryMetadata, offsets: Offsets) -> dict[str, OffsetRange | None]:
    """Return for each source the range that was read up to these offsets."""
    ends: dict[str, OffsetRange | None] = {}
    for index, (source, end) in enumerate(zip(record.sources, offsets.sources, strict=False)):
        read_files = checkpoint.read_files(record.log(index), end) if end is not None else ()
        files = tuple(path for path, _ in read_files)
        ends[source.get("name", "")] = None if end is None else OffsetRange(None, end, files)
    return ends


def reduce_to_query(pipeline: Pipeline, query: str) -> Pipeline:
    """Return the pipeline reduced to one query and everything it reads."""
    graph = PipelineGraph.of(pipeline)
    needed = set(graph.behind(graph.writes[query]))
    return pipeline.model_copy(
        update={
            "sources": {name: entry for name, entry in pipeline.sources.items() if name in needed},
            "views": {name: view for name, view in pipeline.views.items() if name in needed},
            "queries": {query: pipeline.queries[query]},
        }
    )


def check_bounded(pipeline: Pipeline, query: str, at: QueryProgress) -> None:
    """Raise `CheckpointError` if the end offset for reading a stream of the query is unknown.

    If a stream were read to its end, rows that the query has yet to read would be written twice: by the backfill
    and by the query. `pipeline` is reduced to the query.
    """
    into_hint = "or write to another target with --into"
    if at.batch is None:
        raise CheckpointError(
            f"query '{query}' has not committed a batch yet, so its first batches would write the backfilled rows "
            f"again",
            f"run the query first: 'millstream run --until-caught-up --select {query}'; {into_hint}",
        )
    for name, entry in pipeline.sources.items():
        if not entry.static and name not in (at.ends or {}):
            raise CheckpointError(
                f"the checkpoint of query '{query}' does not show how far the query has read source '{name}': the "
                f"file _millstream/record.json is missing, or was written by an earlier version of the query",
                f"run the query, which writes this file: 'millstream run --until-caught-up --select {query}'; "
                f"{into_hint}",
            )


def bounded_reader(
    spark: SparkSession, pipeline: Pipeline, at: QueryProgress, *, bounded: bool = False
) -> Reader:
    """Return the reader of raw rows: it reads tables completely, streams from the oldest row to the query's position.

    With `bounded`, a stream that cannot be read up to that position raises `CheckpointError` instead of being read to
    its end.
    """
    ends = at.ends or {}

    def raw(name: str, entry: SourceEntry) -> DataFrame:
        if pipeline.sources[name].static:
            return read_source(spark, name, entry)
        oldest = entry.source.oldest()
        if name not in ends:
            return oldest.read(spark, static=True, schema=entry.ddl)
        end = ends[name]
        rows = entry.source.read_range(spark, end, entry.ddl) if end is not None else None
        if rows is not None:
            return rows
        if bounded and end is not None:
            raise CheckpointError(
                f"source '{name}' ({entry.source.describe()}) cannot be read exactly up to the offset of the "
                f"query, so rows that the query has not read yet would be written twice",
                "write to another target with --into",
            )
        all_rows = oldest.read(spark, static=True, schema=entry.ddl)
        return all_rows.limit(0) if end is None else all_rows

    return raw


def require_rereadable(pipeline: Pipeline) -> None:
    """Raise `InvalidInput` for a stream that cannot be read a second time."""
    for name, entry in pipeline.sources.items():
        if not entry.static and not entry.source.can_read_once:
            raise InvalidInput(
                f"source '{name}' ({entry.source.describe()}) does not store its rows, so they cannot be read "
                f"again",
                "choose queries that read other sources: millstream backfill QUERY",
            )


def require_complete_input(
    pipeline: Pipeline, query: str, time_range: EventTimeRange, far: timedelta, raw: Reader
) -> None:
    """Raise `InvalidInput` if the sources no longer have all input of the range, because windows would be too small.

    If a broker has deleted old records, the rest is complete from the oldest record plus the watermark delay on,
    because an earlier row would have been late. `far` is the reach of a row's input.
    """
    for name, entry in pipeline.sources.items():
        if entry.static:
            continue
        subject = f"query '{query}': source '{name}' ({entry.source.describe()})"
        fix = "choose a later --from, or use the remaining input with --accept-gap"
        if entry.source.removes_read_files():
            raise InvalidInput(
                f"{subject} deletes files that a query has read, so rows of the range may be missing", fix
            )
        gaps = entry.source.forgotten()
        if not gaps:
            continue
        since = _complete_since(entry, raw(name, entry.model_copy(update={"static": True})), far)
        if since is not None and time_range.start is not None and time_range.start >= since:
            continue
        complete_from = f"; it is complete from {since.isoformat(' ', 'seconds')} on" if since else ""
        raise InvalidInput(f"{subject} no longer has all input of the range: {gaps[0]}{complete_from}", fix)


def _complete_since(entry: SourceEntry, raw: DataFrame, far: timedelta) -> datetime | None:
    """Return the time from which on the remaining input is complete; None if unknown."""
    if entry.watermark is None or len(entry.source.place) < 2:
        return None
    time = entry.watermark.event_time
    decoded = decode_rows(entry, raw).where(F.col(REASON).isNull())
    column = F.col(DECODED)[time] if DECODED in decoded.columns else F.col(time)
    *partition, order = entry.source.place
    first = decoded.groupBy(*partition).agg(F.min_by(column, order).alias("at"))
    # In microseconds, so that the time zone of this process does not matter.
    row = first.agg(F.expr("unix_micros(max(at))").alias("at")).first()
    if row is None or row["at"] is None:
        return None
    oldest = datetime.fromtimestamp(row["at"] / 1e6, UTC)
    return oldest + timedelta(seconds=entry.watermark.delay_threshold.seconds) + far
