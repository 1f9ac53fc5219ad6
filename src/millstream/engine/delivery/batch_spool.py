"""Spool batches that a sink refused, whole and in order, each in its own folder until the sink takes it."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from millstream.checkpoint.private_folder import make_private
from millstream.connectors.api.batch_ledger import UNTOLD, BatchMetadata, parse_metadata
from millstream.engine.events.event_bus import now

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline

FOLDER = "_set_aside"
"""Next to the checkpoint folders of queries, so that the spool outlives a deleted checkpoint."""
_METADATA_FILE = "_note.json"
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
    folder: Path
    note: BatchMetadata = UNTOLD
    """The metadata for the sink's ledger. Empty for a batch that an older version spooled."""

    @property
    def checkpoint(self) -> Path:
        """The folder of the query's checkpoint, which is next to the spool."""
        checkpoints, query = self.folder.parents[3].parent, self.folder.parents[2].name
        return checkpoints / query

    def rows(self, spark: SparkSession) -> DataFrame:
        """Return the batch's rows, in the query's own columns."""
        from pyspark.sql.types import StructType  # noqa: PLC0415 - listing the spool needs no Spark

        schema = StructType.fromJson(
            json.loads((self.folder / _METADATA_FILE).read_text(encoding="utf-8"))["schema"]
        )
        return spark.read.schema(schema).parquet(str(self.folder))

    def forget(self) -> None:
        """Delete the batch. If the process is killed halfway, the rest stays hidden and is deleted with the next."""
        renamed = self.folder.with_name(f"{_PARTIAL_PREFIX}{uuid.uuid4().hex}")
        self.folder.rename(renamed)
        shutil.rmtree(renamed, ignore_errors=True)


@dataclass(frozen=True)
class BatchSpool:
    """The spooled batches of one sink of one checkpoint. Only the run that has the checkpoint's lock uses it."""

    folder: Path

    @classmethod
    def of(cls, pipeline: Pipeline, query: str, query_id: str, sink: str) -> BatchSpool:
        """Return the spool of a sink of a query."""
        return cls(_spool_folder(pipeline, query) / query_id / quote(sink, safe=""))

    def batches(self) -> list[SpooledBatch]:
        """List the spooled batches, oldest first."""
        if not self.folder.is_dir():
            return []
        folders = sorted((int(path.name), path) for path in self.folder.iterdir() if path.name.isdigit())
        return [self._read_batch(batch, folder) for batch, folder in folders]

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

    def spool(self, frame: DataFrame, batch: int, reason: str, metadata: BatchMetadata = UNTOLD) -> None:
        """Spool a batch once, all of it or nothing. Raises errors of running the batch and of the disk.

        Of `metadata`, which is for the sink's ledger, the offsets and the time are stored.
        """
        if self.has_batch(batch):
            return
        # The files contain whole rows, and nothing else closes the folder if checkpoints are outside a `.millstream`.
        make_private(self.folder.parents[2])
        self.folder.mkdir(parents=True, exist_ok=True)
        for partial in self.folder.glob(f"{_PARTIAL_PREFIX}*"):
            shutil.rmtree(partial, ignore_errors=True)
        partial = self.folder / f"{_PARTIAL_PREFIX}{uuid.uuid4().hex}"
        frame.write.parquet(str(partial))
        stored_metadata = replace(metadata, content=None).plain()
        content = {"reason": reason, "at": now(), "schema": frame.schema.jsonValue(), "note": stored_metadata}
        (partial / _METADATA_FILE).write_text(json.dumps(content), encoding="utf-8")
        for file in (*partial.iterdir(), partial):
            _sync(file)
        partial.rename(self._batch_folder(batch))
        _sync(self.folder)

    def note(self, batch: int) -> BatchMetadata | None:
        """Return the metadata of a batch that is spooled here, or None for another batch or without metadata."""
        try:
            metadata = self._read_batch(batch, self._batch_folder(batch)).note
        except FileNotFoundError:
            return None
        return None if metadata == UNTOLD else metadata

    def _batch_folder(self, batch: int) -> Path:
        return self.folder / str(batch)

    def _read_batch(self, batch: int, folder: Path) -> SpooledBatch:
        content = json.loads((folder / _METADATA_FILE).read_text(encoding="utf-8"))
        query, query_id, sink = (unquote(part) for part in self.folder.parts[-3:])
        return SpooledBatch(
            query,
            query_id,
            sink,
            batch,
            content["reason"],
            datetime.fromisoformat(content["at"]),
            folder,
            parse_metadata(content.get("note", {})),
        )


def find_spools(pipeline: Pipeline, query: str) -> Iterator[BatchSpool]:
    """Yield every spool of a query, including those of deleted checkpoints, least recently used first."""
    if pipeline.checkpoint(query).local is None:
        return
    yield from _spools(_spool_folder(pipeline, query))


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


def list_orphaned_batches(pipeline: Pipeline) -> list[SpooledBatch]:
    """List the spooled batches of queries that are not in the spec, in its checkpoint folders. Needs no Spark.

    Another spec may have the query, because two specs may share a checkpoint folder.
    """
    checkpoint_folders = [pipeline.checkpoints.local]
    folders = [pipeline.checkpoint(query).local for query in pipeline.queries]
    checkpoint_folders += [None if folder is None else folder.parent for folder in folders]
    homes = {
        home
        for checkpoints in checkpoint_folders
        if checkpoints is not None and (checkpoints / FOLDER).is_dir()
        for home in (checkpoints / FOLDER).iterdir()
        if home.is_dir() and home.name not in pipeline.queries
    }
    return [batch for home in sorted(homes) for shelf in _spools(home) for batch in shelf.batches()]


def is_for_sink(batch: SpooledBatch, sink: str | None) -> bool:
    """Return whether the batch is for that sink, named by its key or its kind. None means any sink."""
    return sink in (None, batch.sink, batch.sink.partition(":")[0])


def _spools(home: Path) -> list[BatchSpool]:
    return sorted((BatchSpool(folder) for folder in home.glob("*/*") if folder.is_dir()), key=_oldest_time)


def _spool_folder(pipeline: Pipeline, query: str) -> Path:
    folder = pipeline.checkpoint(query).local
    assert folder is not None, "the checkpoint is locked, so it is on this machine"
    return folder.parent / FOLDER / query


def _sync(path: Path) -> None:
    """Flush a file or folder to disk, because the commit that follows declares the batch done."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _oldest_time(spool: BatchSpool) -> float:
    return min((batch.at.timestamp() for batch in spool.batches()), default=float("inf"))
