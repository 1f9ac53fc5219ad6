"""A sink that comes back to a run whose checkpoint another run has taken over."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.diagnostics.failure import CheckpointError, Outage
from millstream.engine.delivery.batch_spool import BatchSpool
from millstream.engine.delivery.spool_retry import SpoolRetry
from millstream.engine.delivery.spooling_writer import SpoolingWriter
from millstream.engine.streaming_query import RunningQuery
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

SPARK: Any = object()
COLUMNS = StructType([StructField("id", LongType())])
IDENTITY = SinkIdentity("shop", "copy", "one-checkpoint", "table", OutputMode.APPEND)


class Table:
    """A sink that is down or up, and counts who claims it, and what is written."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint, self.down, self.claims, self.writes = checkpoint, True, 0, 0

    def writer(self) -> Writer:
        result = TableWriter(IDENTITY)
        result.table, result.checkpoint = self, self.checkpoint
        return result


class TableWriter(Writer):
    table: Table

    def open(self, spark: Any, schema: StructType) -> None:  # noqa: ARG002 - a table without columns
        if self.table.down:
            raise Outage("the table is away", "wait")
        self.table.claims += 1

    def write(self, frame: Any, batch_id: int) -> WriteResult:  # noqa: ARG002 - as above
        self.table.writes += 1
        return WriteResult()


def opened(table: Table, folder: Path) -> SpoolingWriter:
    spool = BatchSpool(folder / "copy" / "one-checkpoint" / "table")
    writer = SpoolingWriter(IDENTITY, table.writer, spool, None)
    writer.open(SPARK, COLUMNS)
    return writer


def take_over(checkpoint: Path) -> None:
    """Name another run in the lock file, as one does that finds none."""
    lock = checkpoint / "_millstream" / "lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"owner": "shop.copy", "pid": 1, "host": "elsewhere", "since": "noon"}))


def test_a_sink_that_is_back_is_not_claimed_by_a_run_that_was_replaced(tmp_path: Path) -> None:
    table = Table(tmp_path / "copy")
    writer = opened(table, tmp_path)
    take_over(table.checkpoint)
    table.down = False

    with pytest.raises(CheckpointError, match=r"taken over by 'shop\.copy'"):
        writer.has_batch(0)

    assert table.claims == 0


def test_a_sink_that_is_open_gets_no_spooled_batch_of_a_run_that_was_replaced(tmp_path: Path) -> None:
    table = Table(tmp_path / "copy")
    table.down = False
    writer = opened(table, tmp_path)
    frame: Any = SimpleNamespace(schema=COLUMNS)
    waiting: Any = SimpleNamespace(batch=0, rows=lambda _: frame, forget=lambda: None)
    writer.deliver(waiting, SPARK)
    take_over(table.checkpoint)

    with pytest.raises(CheckpointError, match="taken over by"):
        writer.deliver(waiting, SPARK)

    assert (table.claims, table.writes) == (1, 1)


def test_a_query_without_new_records_hears_that_its_run_was_replaced(tmp_path: Path) -> None:
    table = Table(tmp_path / "copy")
    writer = opened(table, tmp_path)
    retry = SpoolRetry("copy", [writer])
    query: Any = SimpleNamespace(_folder=lambda: table.checkpoint, delivery=SimpleNamespace(probing=retry))
    RunningQuery.look(query)
    take_over(table.checkpoint)
    with pytest.raises(CheckpointError):
        # As the thread does, which tries the sink again.
        writer.has_batch(0)

    with pytest.raises(CheckpointError, match="taken over by"):
        RunningQuery.look(query)
