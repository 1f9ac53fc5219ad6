"""A query that starts after the rows that exist, on a checkpoint without a batch: the first start decides once."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from delta_tables import read_rows
from millstream.connectors.delta.writer import DeltaWriter
from millstream.diagnostics.failure import Outage
from millstream.engine.events.event_bus import EventBus
from millstream.engine.run import RunOptions, probe_connections, run_pipeline
from millstream.pipeline.model import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.connectors.api.writer import WriteResult

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")


class Copy:
    """A query that copies a Delta table into another, without the rows that exist."""

    def __init__(self, folder: Path, spark: SparkSession, place: str) -> None:
        self.folder, self.spark = folder, spark
        self.append(0)
        source = {place: str(folder / "orders"), "starting_version": "latest"}
        if place == "table":
            source[place] = f"orders_{uuid.uuid4().hex}"
            spark.sql(f"CREATE TABLE {source[place]} USING delta LOCATION '{folder / 'orders'}'")
        spec = {
            "name": "shop",
            "sources": {"orders": {"delta": source}},
            "queries": {"copy": {"from": "orders", "to": [{"delta": str(folder / "copy")}]}},
            "defaults": {"retry": {"first": "10 ms", "give_up_after": "1 minute"}},
            "folder": folder,
        }
        self.pipeline = Pipeline.model_validate(spec, context={"folder": folder})

    def append(self, number: int) -> None:
        write_deltalake(self.folder / "orders", pa.table({"n": [number]}), mode="append")

    def run(self) -> bool:
        """Run until it is caught up."""
        probed = probe_connections(self.pipeline, ["copy"])
        return run_pipeline(self.spark, self.pipeline, RunOptions(until_caught_up=True), EventBus(), probed)

    def rows(self) -> list[int]:
        return sorted(number for (number,) in read_rows(self.folder / "copy", "n"))


@pytest.fixture(params=["path", "table"])
def copy(tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest) -> Copy:
    """The query, which has started once and has found no row. Its source is a folder, or a table of the catalog."""
    copy = Copy(tmp_path, spark, request.param)
    assert copy.run()
    return copy


def test_rows_that_come_between_two_runs_are_read(copy: Copy) -> None:
    copy.append(1)
    copy.append(2)

    assert copy.run()

    assert copy.rows() == [1, 2]


def test_a_first_batch_that_fails_is_repeated_with_its_rows(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy.append(1)

    def fail_once(*_: object) -> WriteResult:
        monkeypatch.undo()
        copy.append(2)
        raise Outage("the sink is away")

    monkeypatch.setattr(DeltaWriter, "write", fail_once)

    assert copy.run()

    assert copy.run()
    assert copy.rows() == [1, 2]
