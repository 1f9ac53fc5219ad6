"""A sink that comes back to a run whose checkpoint another run has taken over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.diagnostics.failure import CheckpointError, Outage
from millstream.engine.delivery.batch_spool import BatchSpool
from millstream.engine.delivery.spooling_writer import SpoolingWriter
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

SPARK: Any = object()
COLUMNS = StructType([StructField("id", LongType())])
IDENTITY = SinkIdentity("shop", "copy", "one-checkpoint", "table", OutputMode.APPEND)


class Table:
    """A sink that is down or up, and counts who claims it."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint, self.down, self.claims = checkpoint, True, 0

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
        return WriteResult()


def test_a_sink_that_is_back_is_not_claimed_by_a_run_that_was_replaced(tmp_path: Path) -> None:
    table = Table(tmp_path / "copy")
    writer = SpoolingWriter(
        IDENTITY, table.writer, BatchSpool(tmp_path / "copy" / "one-checkpoint" / "table"), None
    )
    writer.open(SPARK, COLUMNS)
    lock = tmp_path / "copy" / "_millstream" / "lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"owner": "shop.copy", "pid": 1, "host": "elsewhere", "since": "noon"}))
    table.down = False

    with pytest.raises(CheckpointError, match=r"taken over by 'shop\.copy'"):
        writer.has_batch(0)

    assert table.claims == 0
