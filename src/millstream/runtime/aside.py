"""Batches that a sink refused, whole and in order, each in a folder of its own until the sink takes it."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from millstream.runtime.events import now

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline

FOLDER = "_set_aside"
"""Beside the checkpoint folders of queries: it outlives a checkpoint that is deleted."""
_NOTE = "_note.json"
# Hidden from `batches` until it is whole.
_HALF = ".half-"


@dataclass(frozen=True)
class SetAside:
    """One batch of one sink that waits."""

    query: str
    query_id: str
    sink: str
    """The sink's key in the query: `postgres:purchases`."""
    batch: int
    reason: str
    at: datetime
    """When it was set aside."""
    folder: Path

    def rows(self, spark: SparkSession) -> DataFrame:
        """Its rows, in the query's own columns."""
        from pyspark.sql.types import StructType  # noqa: PLC0415 - what is listed needs no Spark

        schema = StructType.fromJson(json.loads((self.folder / _NOTE).read_text(encoding="utf-8"))["schema"])
        return spark.read.schema(schema).parquet(str(self.folder))

    def forget(self) -> None:
        """It is delivered. Killed in the middle, it stays hidden and is forgotten with the next one."""
        gone = self.folder.with_name(f"{_HALF}{uuid.uuid4().hex}")
        self.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


@dataclass(frozen=True)
class Shelf:
    """What is set aside of one sink of one checkpoint. One run at a time uses it: it holds the checkpoint's lock."""

    folder: Path

    @classmethod
    def of(cls, pipeline: Pipeline, query: str, query_id: str, sink: str) -> Shelf:
        """The place for a sink of a query."""
        return cls(_home(pipeline, query) / query_id / quote(sink, safe=""))

    def batches(self) -> list[SetAside]:
        """What waits, oldest first."""
        if not self.folder.is_dir():
            return []
        found = sorted((int(one.name), one) for one in self.folder.iterdir() if one.name.isdigit())
        return [self._read(batch, folder) for batch, folder in found]

    def oldest(self) -> SetAside | None:
        """The batch that is next to be delivered; None when none waits."""
        if not self.folder.is_dir():
            return None
        batch = min((int(one.name) for one in self.folder.iterdir() if one.name.isdigit()), default=None)
        return None if batch is None else self._read(batch, self._place(batch))

    def holds(self, batch: int) -> bool:
        """Does that batch wait here?"""
        return self._place(batch).is_dir()

    def waits(self) -> bool:
        """Does any batch wait here?"""
        return self.folder.is_dir() and any(one.name.isdigit() for one in self.folder.iterdir())

    def put(self, frame: DataFrame, batch: int, reason: str) -> None:
        """Set a batch aside: all of it or nothing, and once. Raises what running the batch or the disk raises."""
        if self.holds(batch):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for half in self.folder.glob(f"{_HALF}*"):
            shutil.rmtree(half, ignore_errors=True)
        half = self.folder / f"{_HALF}{uuid.uuid4().hex}"
        frame.write.parquet(str(half))
        note = {"reason": reason, "at": now(), "schema": frame.schema.jsonValue()}
        (half / _NOTE).write_text(json.dumps(note), encoding="utf-8")
        for file in (*half.iterdir(), half):
            _sync(file)
        half.rename(self._place(batch))
        _sync(self.folder)

    def _place(self, batch: int) -> Path:
        return self.folder / str(batch)

    def _read(self, batch: int, folder: Path) -> SetAside:
        note = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
        query, query_id, sink = (unquote(part) for part in self.folder.parts[-3:])
        return SetAside(
            query, query_id, sink, batch, note["reason"], datetime.fromisoformat(note["at"]), folder
        )


def shelves(pipeline: Pipeline, query: str) -> Iterator[Shelf]:
    """Every place of a query, of checkpoints that are gone too, those used longest ago first."""
    if pipeline.checkpoint(query).local is None:
        return
    home = _home(pipeline, query)
    found = [Shelf(folder) for folder in home.glob("*/*") if folder.is_dir()]
    yield from sorted(found, key=_oldest)


def waiting(pipeline: Pipeline, queries: Sequence[str], sink: str | None = None) -> list[SetAside]:
    """The batches that wait, those of one sink of one checkpoint together and in order. Needs no Spark.

    `sink` is a sink's key (`postgres:purchases`) or its kind; all unless given.
    """
    return [
        batch
        for query in queries
        for shelf in shelves(pipeline, query)
        for batch in shelf.batches()
        if wanted(batch, sink)
    ]


def wanted(batch: SetAside, sink: str | None) -> bool:
    """Is it for that sink, named by its key or its kind? Any unless given."""
    return sink in (None, batch.sink, batch.sink.partition(":")[0])


def _home(pipeline: Pipeline, query: str) -> Path:
    folder = pipeline.checkpoint(query).local
    assert folder is not None, "locked, and so on this machine"
    return folder.parent / FOLDER / query


def _sync(path: Path) -> None:
    """Have the disk keep it: the checkpoint that follows says that the batch is done."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _oldest(shelf: Shelf) -> float:
    return min((one.at.timestamp() for one in shelf.batches()), default=float("inf"))
