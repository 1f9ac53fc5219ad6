"""Prepare a checkpoint without state that begins where a former one has read to, or at its beginning."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from millstream.checkpoint import adoption_log, former_checkpoint, metadata
from millstream.checkpoint.atomic_file import write_durably
from millstream.checkpoint.folder import NOTHING, Checkpoint
from millstream.checkpoint.former_checkpoint import FormerCheckpoint
from millstream.checkpoint.remote.path import require_local
from millstream.checkpoint.replacement import name_backup, prepare_folder
from millstream.connectors.api.values.offsets import StartPosition
from millstream.connectors.api.writer import SinkIdentity
from millstream.diagnostics.failure import CheckpointError
from millstream.engine.events.event_bus import now
from millstream.engine.recovery.checkpoint_record import build_record
from millstream.engine.recovery.source_offsets import list_origins
from millstream.engine.sink_keys import sink_keys
from millstream.frames.user_functions import bind_functions
from millstream.plan.compare_sources import find_former_source
from millstream.spark import internals

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.folder import Offsets
    from millstream.checkpoint.metadata import QueryMetadata
    from millstream.connectors.api.values.offsets import StartFiles
    from millstream.pipeline.model import Pipeline

_PARTITIONS = "spark.sql.shuffle.partitions"


class ReadFrom(StrEnum):
    """Where a fresh checkpoint begins to read."""

    START = "start"
    """At the first record that the former checkpoint read."""
    FORMER = "former"
    """After the last record that the former checkpoint read."""
    NOW = "now"
    """After the newest record of each source."""


def prepare_fresh_checkpoint(
    spark: SparkSession,
    pipeline: Pipeline,
    query: str,
    frame: DataFrame,
    read_from: ReadFrom,
    former: FormerCheckpoint,
) -> Path:
    """Build the folder of a fresh checkpoint next to the query's own, which stays as it is. Returns the new folder.

    Batch 0 is planned, without rows and with the former watermark, so that the first start runs it: Spark then drops
    rows that the former checkpoint would have dropped as late. Raises `CheckpointError` for a source that cannot
    begin at a position.
    """
    folder = require_local(pipeline.checkpoint_folder(query), "a fresh checkpoint")
    backup = former_checkpoint.locate(folder, former)
    base = Checkpoint(backup if backup.is_dir() else folder)
    recorded = metadata.read(base.folder)
    offsets = base.offsets(former.batch)
    if recorded is None or offsets is None:
        raise CheckpointError(
            f"checkpoint {base.folder} has no record of its sources, or no offsets of batch {former.batch}",
            f"delete the checkpoint and start over: 'millstream reset {query}'",
        )
    if offsets.is_epoch:
        raise CheckpointError(
            f"checkpoint {base.folder} was written with a continuous trigger, and Spark cannot continue it with "
            f"batches",
            "name another checkpoint folder and another target in the spec",
        )
    prepared = prepare_folder(folder)
    fresh = Checkpoint(prepared)
    query_id = fresh.renew_id()
    origins = list_origins(frame)
    record = build_record(spark, pipeline, query, query_id, frame, origins, {}, {})
    starts = [
        _start_source(spark, pipeline, base, recorded, offsets, source, read_from)
        for source in record.sources
    ]
    for index, start in enumerate(starts):
        if start is not None:
            log = prepared / "sources" / str(record.log(index)) / "0"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(start.log)
    header = json.loads(internals.format_offset_metadata(spark, former.watermark, int(time.time() * 1000)))
    # Spark's own value is null until a session sets it.
    header["conf"][_PARTITIONS] = spark.conf.get(_PARTITIONS)
    lines = ["v1", json.dumps(header), *(NOTHING if start is None else start.offset for start in starts)]
    (prepared / "offsets").mkdir(exist_ok=True)
    write_durably(prepared / "offsets" / "0", "\n".join(lines))
    metadata.write(prepared, record)
    former_checkpoint.write(prepared, former)
    return prepared


def _start_source(
    spark: SparkSession,
    pipeline: Pipeline,
    base: Checkpoint,
    recorded: QueryMetadata,
    offsets: Offsets,
    source: dict[str, str],
    read_from: ReadFrom,
) -> StartFiles | None:
    """Return where a source begins; None for one that the former query did not read: it begins as in a new one."""
    name = source.get("name", "?")
    number = find_former_source(source, recorded.sources)
    entry = pipeline.sources.get(name)
    if entry is None:
        raise CheckpointError(
            "the query reads a stream that a Python function opens, and a new checkpoint cannot start such a "
            "stream at a given offset",
            "declare the stream under 'sources'",
        )
    if number is None:
        return None
    if recorded.sources[number].get("name") != name:
        raise CheckpointError(
            f"source '{name}' was called '{recorded.sources[number].get('name')}' when the checkpoint was written",
            "rename it in a separate change, and run once before this one",
        )
    if read_from is ReadFrom.NOW:
        position = entry.source.newest_position(spark, entry.ddl)
    else:
        end = offsets.sources[number] if number < len(offsets.sources) else None
        if end is None:
            return None
        log = recorded.log(number)
        position = (
            StartPosition(base.first(log))
            if read_from is ReadFrom.START
            else StartPosition(end, base.read_files(log, end))
        )
    start = None if position is None else entry.source.start_files(position)
    if start is None:
        raise CheckpointError(
            f"source '{name}' ({entry.source.describe()}) cannot start at a given offset in a new checkpoint",
            "use a new checkpoint folder and another target; only Kafka and file sources can start at a given "
            "offset",
        )
    return start


def read_former(folder: Path, past: str, *, is_pending: bool) -> FormerCheckpoint:
    """Describe the checkpoint that a fresh one continues from.

    For a fresh one that has run no batch it is that one's former checkpoint. Raises `CheckpointError` if a batch is
    unfinished.
    """
    base = former_checkpoint.find_base(folder)
    checkpoint = Checkpoint(base)
    committed, planned = checkpoint.committed(), checkpoint.planned()
    if committed is None or planned != committed:
        raise CheckpointError(
            f"batch {planned} of {base} is planned but not committed, so it is unknown whether the sinks have its "
            f"rows",
            "finish the batch with the former spec: 'millstream run --until-caught-up'; then change the spec again",
        )
    return FormerCheckpoint(
        name_backup(folder, "renewal", committed).name
        if base == folder
        else os.path.relpath(str(base), str(folder.parent)),
        str(checkpoint.query_id()),
        committed,
        checkpoint.next_watermark(committed),
        past,
        is_pending,
    )


def keep_watermark(
    former: FormerCheckpoint, before: QueryMetadata | None, now_: QueryMetadata
) -> FormerCheckpoint:
    """Return the former checkpoint with its watermark, or with none if the event time is another one now."""
    columns = [
        None
        if record is None or record.plan is None
        else sorted(mark.column for mark in record.plan.watermarks)
        for record in (before, now_)
    ]
    return former if columns[0] == columns[1] and columns[0] else replace(former, watermark=0)


def adopt_rows(spark: SparkSession, pipeline: Pipeline, query: str, checkpoint: Path) -> None:
    """Record in a checkpoint that the rows of other checkpoints and backfills in its sinks belong to it."""
    query_id = str(Checkpoint(checkpoint).query_id())
    mode = pipeline.queries[query].output_mode
    adopted = adoption_log.last_adopted_batches(checkpoint)
    for key, entry in zip(sink_keys(pipeline, query), pipeline.queries[query].to, strict=True):
        sink = bind_functions(entry.sink, pipeline.folder)
        writer = sink.writer(SinkIdentity(pipeline.name, query, query_id, key, mode))
        try:
            for item in writer.last_committed_batches(spark):
                if item.query_id != query_id and item.batch > adopted.get(item.writer, -1):
                    adoption_log.add(checkpoint, key, item.writer, item.batch, now())
        finally:
            writer.close()
