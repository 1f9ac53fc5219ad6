"""Spool batches that a sink refused, whole and in order, each in its own folder until the sink takes it."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from millstream.checkpoint.atomic_file import flush_path, write_durably
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.private_folder import make_private
from millstream.checkpoint.remote.object_lease import OWN
from millstream.checkpoint.remote.own_files import ROWS
from millstream.checkpoint.remote.path import RemotePath, delete_folder, rename_path, to_spark_path
from millstream.checkpoint.replacement import flush_folder
from millstream.connectors.api.batch_ledger import UNTOLD, BatchMetadata, parse_metadata
from millstream.engine.events.event_bus import now
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.pipeline.model import Pipeline

FOLDER = "_set_aside"
"""Next to the checkpoint folders of queries, so that the spool outlives a deleted checkpoint."""
_METADATA_FILE = "_note.json"
# A spec may let files of its sinks have milliseconds. Spark reads this setting of the session only.
_TIMESTAMPS, _MICROSECONDS = "spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"
# A spec may let its sources pass over damaged files. The batch would be delivered without their rows, and deleted.
_WHOLE = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
# Hidden from `batches` until it is complete.
_PARTIAL_PREFIX = ".half-"


@dataclass(frozen=True)
class SpooledBatch:
    """One spooled batch of one sink."""

    query: str
    query_id: str
    sink: str
    """The sink's key in the query: `postgres:purchases`."""
    batch: int
    reason: str
    at: datetime
    """The time at which the batch was spooled."""
    folder: CheckpointPath
    note: BatchMetadata = UNTOLD
    """The metadata for the sink's ledger. Empty for a batch that an older version spooled."""

    @property
    def checkpoint(self) -> CheckpointPath:
        """The folder of the checkpoint after which the spool is named, and which contains it on S3.

        Older versions named it after the query, whose checkpoint may have another name.
        """
        above, name = self.folder.parents[4], self.folder.parents[2].name
        return above.parent if above.name == OWN else above / name

    def rows(self, spark: SparkSession) -> DataFrame:
        """Return the batch's rows, in the query's own columns."""
        from pyspark.sql.types import StructType  # noqa: PLC0415 - listing the spool needs no Spark

        content = json.loads((self.folder / _METADATA_FILE).read_text(encoding="utf-8"))
        reader = spark.read.schema(StructType.fromJson(content["schema"])).options(
            **internals.PLAIN_PATHS, **_WHOLE
        )
        return reader.parquet(content.get("rows", to_spark_path(self.folder)))

    def forget(self) -> None:
        """Delete the batch. If the process is killed halfway, the rest stays hidden and is deleted with the next."""
        if isinstance(self.folder, RemotePath) and self.folder.is_object:
            # Its rows are deleted once it is certain that no other run has taken over with this batch.
            rows = json.loads((self.folder / _METADATA_FILE).read_text())["rows"]
            self.folder.delete_all()
            RemotePath(rows).delete_all()
            return
        renamed = self.folder.with_name(f"{_PARTIAL_PREFIX}{uuid.uuid4().hex}")
        rename_path(self.folder, renamed)
        delete_folder(renamed)


@dataclass(frozen=True)
class BatchSpool:
    """The spooled batches of one sink of one checkpoint. Only the run that has the checkpoint's lock uses it."""

    folder: CheckpointPath
    query: str = ""
    """The name that the query has in the spec. If it is empty, the batches know the name that it had."""

    @classmethod
    def of(cls, pipeline: Pipeline, query: str, query_id: str, sink: str) -> BatchSpool:
        """Return the spool of a sink of a query."""
        newest, *older = (
            cls(folder / query_id / quote(sink, safe=""), query)
            for folder in spool_folders(pipeline.checkpoint_folder(query), query)
        )
        # Batches are delivered in order, so that later ones follow those that an older version has spooled.
        return next((spool for spool in older if spool.folder.is_dir()), newest)

    def batches(self) -> list[SpooledBatch]:
        """List the spooled batches, oldest first."""
        if not self.folder.is_dir():
            return []
        folders = sorted((int(path.name), path) for path in self.folder.iterdir() if path.name.isdigit())
        batches = []
        for batch, folder in folders:
            try:
                batches.append(self._read_batch(batch, folder))
            except FileNotFoundError:
                # A run delivers batches while a command lists them.
                if folder.exists():
                    raise
        return batches

    def oldest(self) -> SpooledBatch | None:
        """Return the next batch to deliver, or None if none is spooled."""
        if not self.folder.is_dir():
            return None
        batch = min((int(path.name) for path in self.folder.iterdir() if path.name.isdigit()), default=None)
        return None if batch is None else self._read_batch(batch, self._batch_folder(batch))

    def has_batch(self, batch: int) -> bool:
        """Return whether that batch is spooled here."""
        return self._batch_folder(batch).is_dir()

    def has_batches(self) -> bool:
        """Return whether any batch is spooled here."""
        return self.folder.is_dir() and any(path.name.isdigit() for path in self.folder.iterdir())

    def count(self) -> int:
        """Return the number of batches that are spooled here."""
        return sum(path.name.isdigit() for path in self.folder.iterdir()) if self.folder.is_dir() else 0

    def spool(self, frame: DataFrame, batch: int, reason: str, metadata: BatchMetadata = UNTOLD) -> None:
        """Spool a batch once, all of it or nothing. Raises errors of running the batch and of the disk.

        Of `metadata`, which is for the sink's ledger, the offsets and the time are stored.
        """
        if self.has_batch(batch):
            return
        # The files contain whole rows, and nothing else closes the folder if checkpoints are outside a `.millstream`.
        make_private(self.folder.parents[2])
        self.folder.mkdir(parents=True, exist_ok=True)
        stored_metadata = replace(metadata, content=None).plain()
        content = {
            "query": self.query,
            "reason": reason,
            "at": now(),
            "schema": frame.schema.jsonValue(),
            "note": stored_metadata,
        }
        if isinstance(self.folder, RemotePath) and self.folder.is_object:
            # Nothing is renamed on S3: the batch is spooled once its metadata, written last, name its rows.
            rows = self._prepare_rows(self.folder)
            _write_rows(frame, str(rows))
            write_durably(
                self._batch_folder(batch) / _METADATA_FILE, json.dumps({**content, "rows": str(rows)})
            )
            return
        for partial in self.folder.glob(f"{_PARTIAL_PREFIX}*"):
            delete_folder(partial)
        partial = self.folder / f"{_PARTIAL_PREFIX}{uuid.uuid4().hex}"
        _write_rows(frame, to_spark_path(partial))
        write_durably(partial / _METADATA_FILE, json.dumps(content))
        _publish(partial, self._batch_folder(batch))

    def _prepare_rows(self, folder: RemotePath) -> RemotePath:
        """Return a new folder for rows on an object store. Deletes what a killed process has left of others."""
        query_id, sink = folder.parent.name, folder.name
        rows_folder = folder.parents[3] / ROWS / query_id / sink
        spooled = set()
        for path in folder.glob("*"):
            # Another thread delivers spooled batches meanwhile, and deletes them.
            with suppress(FileNotFoundError):
                spooled.add(json.loads((path / _METADATA_FILE).read_text())["rows"])
        for path in rows_folder.glob("*"):
            if str(path) not in spooled:
                path.delete_all()
        return rows_folder / uuid.uuid4().hex

    def note(self, batch: int) -> BatchMetadata | None:
        """Return the metadata of a batch that is spooled here, or None for another batch or without metadata."""
        try:
            metadata = self._read_batch(batch, self._batch_folder(batch)).note
        except FileNotFoundError:
            return None
        return None if metadata == UNTOLD else metadata

    def _batch_folder(self, batch: int) -> CheckpointPath:
        return self.folder / str(batch)

    def _read_batch(self, batch: int, folder: CheckpointPath) -> SpooledBatch:
        content = json.loads((folder / _METADATA_FILE).read_text(encoding="utf-8"))
        places = (self.folder.parents[1], self.folder.parent, self.folder)
        name, query_id, sink = (unquote(place.name) for place in places)
        return SpooledBatch(
            self.query or content.get("query") or name,
            query_id,
            sink,
            batch,
            content["reason"],
            datetime.fromisoformat(content["at"]),
            folder,
            parse_metadata(content.get("note", {})),
        )


def _write_rows(frame: DataFrame, folder: str) -> None:
    """Write the rows with all digits of their times."""
    settings = frame.sparkSession.conf
    before = str(settings.get(_TIMESTAMPS))
    settings.set(_TIMESTAMPS, _MICROSECONDS)
    try:
        frame.write.parquet(folder)
    finally:
        settings.set(_TIMESTAMPS, before)


def find_spools(pipeline: Pipeline, query: str) -> Iterator[BatchSpool]:
    """Yield every spool of a query, including those of deleted checkpoints, least recently used first."""
    yield from _find_spools(pipeline.checkpoint_folder(query), query)


def _find_spools(checkpoint: CheckpointPath, query: str) -> Iterator[BatchSpool]:
    newest, *older = spool_folders(checkpoint, query)
    yield from _spools(newest, query)
    for folder in older:
        # Under the name of the query are batches of other checkpoints too, as of another spec with such a query.
        if folder.is_dir() and (query_id := Checkpoint(checkpoint).query_id()) is not None:
            yield from _spools(folder, query, query_id)


def list_spooled_batches(
    pipeline: Pipeline, queries: Sequence[str], sink: str | None = None
) -> list[SpooledBatch]:
    """List the spooled batches, those of one sink of one checkpoint together and in order. Needs no Spark.

    `sink` is a sink's key (`postgres:purchases`) or its kind. None means all sinks.
    """
    return [
        batch
        for query in queries
        for shelf in find_spools(pipeline, query)
        for batch in shelf.batches()
        if is_for_sink(batch, sink)
    ]


def list_batches_next_to(checkpoint: CheckpointPath, query: str) -> list[SpooledBatch]:
    """List the spooled batches that a query has next to a checkpoint folder, whatever the spec says."""
    return [batch for shelf in _find_spools(checkpoint, query) for batch in shelf.batches()]


def list_orphaned_batches(pipeline: Pipeline) -> list[SpooledBatch]:
    """List the spooled batches of checkpoints that no query of the spec has, in its checkpoint folders.

    Another spec may have the checkpoint, because two specs may share a folder of checkpoints. Needs no Spark.
    """
    own = {shelf.folder for query in pipeline.queries for shelf in find_spools(pipeline, query)}
    checkpoint_folders = {
        pipeline.checkpoints_folder,
        *(pipeline.checkpoint_folder(query).parent for query in pipeline.queries),
    }
    homes = {
        home
        for checkpoints in checkpoint_folders
        for spools in _list_spool_folders(checkpoints)
        if spools.is_dir()
        for home in spools.iterdir()
        if home.is_dir()
    }
    shelves = [shelf for home in sorted(homes) for shelf in _spools(home) if shelf.folder not in own]
    return [batch for shelf in shelves for batch in shelf.batches()]


def _list_spool_folders(checkpoints: CheckpointPath) -> list[CheckpointPath]:
    if isinstance(checkpoints, RemotePath) and checkpoints.is_object:
        return [path / OWN / FOLDER for path in checkpoints.glob("*") if path.is_dir()]
    return [checkpoints / FOLDER]


def is_for_sink(batch: SpooledBatch, sink: str | None) -> bool:
    """Return whether the batch is for that sink, named by its key or its kind. None means any sink."""
    return sink in (None, batch.sink, batch.sink.partition(":")[0])


def _spools(home: CheckpointPath, query: str = "", query_id: str = "*") -> list[BatchSpool]:
    folders = (folder for folder in home.glob(f"{query_id}/*") if folder.is_dir())
    return sorted((BatchSpool(folder, query) for folder in folders), key=_oldest_time)


def spool_folders(checkpoint: CheckpointPath, query: str) -> list[CheckpointPath]:
    """Return the folders of a checkpoint's spools: next to it with its name, or among its own files on S3.

    A second one has the name of the query, in which older versions spooled the batches of a checkpoint with another
    name.
    """
    if isinstance(checkpoint, RemotePath) and checkpoint.is_object:
        return [checkpoint / OWN / FOLDER / query]
    return [checkpoint.parent / FOLDER / name for name in dict.fromkeys((checkpoint.name, query))]


def _publish(partial: CheckpointPath, target: CheckpointPath) -> None:
    """Give a complete batch its name. It is on the disk then, because the commit that follows declares it done."""
    # A remote file system has what was written once a file is closed.
    if isinstance(partial, Path):
        flush_folder(partial)
    rename_path(partial, target)
    if isinstance(target, Path):
        flush_path(target.parent)


def _oldest_time(spool: BatchSpool) -> float:
    return min((batch.at.timestamp() for batch in spool.batches()), default=float("inf"))
