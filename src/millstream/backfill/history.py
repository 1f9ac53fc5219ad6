"""The input of a backfill: all that the sources hold, up to where the running query stands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.checkpoint import record as records
from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.source import OffsetRange
from millstream.diagnostics.failure import WrongUse
from millstream.pipeline.graph import Graph
from millstream.runtime.assemble import read
from millstream.runtime.decode import DECODED, REASON, judge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.folder import Offsets
    from millstream.checkpoint.record import Record
    from millstream.connectors.cut import Cut
    from millstream.pipeline.model import Pipeline, SourceEntry
    from millstream.runtime.assemble import Reader


@dataclass(frozen=True)
class Stand:
    """How far a query has come: its last committed batch. Empty before the first."""

    batch: int | None = None
    watermark: datetime | None = None
    ends: Mapping[str, OffsetRange | None] | None = None
    """By source all that it has read; None for a source of which it has read nothing."""


def stand(pipeline: Pipeline, query: str) -> Stand:
    """Where a query stands by its checkpoint, which is read and not locked."""
    folder = pipeline.checkpoint(query).local
    if folder is None:
        return Stand()
    checkpoint = Checkpoint(folder)
    batch = checkpoint.committed()
    offsets = checkpoint.offsets(batch) if batch is not None else None
    record = records.read(folder)
    if offsets is None:
        return Stand()
    ends = {} if record is None else _ends(checkpoint, record, offsets)
    return Stand(batch, datetime.fromtimestamp(offsets.watermark / 1000, UTC), ends)


def _ends(checkpoint: Checkpoint, record: Record, offsets: Offsets) -> dict[str, OffsetRange | None]:
    """By source all that was read up to these offsets."""
    ends: dict[str, OffsetRange | None] = {}
    for index, (told, end) in enumerate(zip(record.sources, offsets.sources, strict=False)):
        files = checkpoint.files(record.log(index), None, end) if end is not None else ()
        ends[told.get("name", "")] = None if end is None else OffsetRange(None, end, files)
    return ends


def only(pipeline: Pipeline, query: str) -> Pipeline:
    """The pipeline with that query and what it reads."""
    graph = Graph.of(pipeline)
    needed = set(graph.behind(graph.writes[query]))
    return pipeline.model_copy(
        update={
            "sources": {name: entry for name, entry in pipeline.sources.items() if name in needed},
            "views": {name: view for name, view in pipeline.views.items() if name in needed},
            "queries": {query: pipeline.queries[query]},
        }
    )


def reader(spark: SparkSession, pipeline: Pipeline, at: Stand) -> Reader:
    """How raw rows are read: tables as they stand, streams from their oldest rows to where the query stands."""
    ends = at.ends or {}

    def raw(name: str, entry: SourceEntry) -> DataFrame:
        if pipeline.sources[name].static:
            return read(spark, name, entry)
        oldest = entry.source.oldest()
        if name not in ends:
            return oldest.read(spark, static=True, schema=entry.ddl)
        end = ends[name]
        found = entry.source.read_range(spark, end, entry.ddl) if end is not None else None
        if found is not None:
            return found
        whole = oldest.read(spark, static=True, schema=entry.ddl)
        return whole.limit(0) if end is None else whole

    return raw


def readable(pipeline: Pipeline) -> None:
    """Raises `WrongUse` for a stream that cannot be read a second time."""
    for name, entry in pipeline.sources.items():
        if not entry.static and not entry.source.static:
            raise WrongUse(
                f"source '{name}' ({entry.source.describe()}) keeps nothing that could be read again",
                "choose queries of other sources: millstream backfill QUERY",
            )


def complete(pipeline: Pipeline, query: str, cut: Cut, far: timedelta, raw: Reader) -> None:
    """Raises `WrongUse` when the sources no longer have all input of the range: windows would come out too small.

    Where a broker has deleted old records, those that are left are complete from the delay of the watermark after
    the oldest on: an earlier row would have been late. `far` is the reach of a row's input.
    """
    for name, entry in pipeline.sources.items():
        if entry.static:
            continue
        said = f"query '{query}': source '{name}' ({entry.source.describe()})"
        cure = "choose a later --from, or take what there is with --accept-gap"
        if entry.source.taken_away():
            raise WrongUse(
                f"{said} removes what a query has read, so that rows of the range may be gone", cure
            )
        gaps = entry.source.forgotten()
        if not gaps:
            continue
        since = _since(entry, raw(name, entry.model_copy(update={"static": True})), far)
        if since is not None and cut.start is not None and cut.start >= since:
            continue
        known = f"; it has all from {since.isoformat(' ', 'seconds')} on" if since else ""
        raise WrongUse(f"{said} no longer has all input of the range: {gaps[0]}{known}", cure)


def _since(entry: SourceEntry, raw: DataFrame, far: timedelta) -> datetime | None:
    """From this moment on rows can be computed from what is left; None where nothing tells."""
    if entry.watermark is None or len(entry.source.place) < 2:
        return None
    time = entry.watermark.event_time
    judged = judge(entry, raw).where(F.col(REASON).isNull())
    column = F.col(DECODED)[time] if DECODED in judged.columns else F.col(time)
    *part, order = entry.source.place
    first = judged.groupBy(*part).agg(F.min_by(column, order).alias("at"))
    # In whole microseconds, whatever zone this process is in.
    row = first.agg(F.expr("unix_micros(max(at))").alias("at")).first()
    if row is None or row["at"] is None:
        return None
    oldest = datetime.fromtimestamp(row["at"] / 1e6, UTC)
    return oldest + timedelta(seconds=entry.watermark.delay_threshold.seconds) + far
