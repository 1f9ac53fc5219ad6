"""Projects whose batches wait for their sinks, and the commands over them that are killed."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable

from millstream.diagnostics.failure import CheckpointMismatch
from recovery import dying_commands, outage, same_process

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints
    from recovery.dying_commands import Case

REFUSED = """
name: shop
spark: {{spark.sql.shuffle.partitions: 1, spark.driver.memory: 1g, spark.master: "local[2]"}}
sources:
  orders:
    json: {{path: in, max_files_per_trigger: 1}}
    schema: {{id: string, amount: int}}
queries:
  copy: {{from: orders, to: [{{delta: table{0}}}]}}
"""
REPLAY = ("deadletter", "replay", "copy")
BEGAN = 1_750_000_000
# Nobody listens there.
NOBODY = "postgresql://nobody@127.0.0.1:9/none"


class RefusedBatch:
    """A batch that its table refuses and one behind it; the setting with which they wait was taken off."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder = folder
        spec = folder / "pipeline.yml"
        spec.write_text(REFUSED.format(", on_error: dead_letter"))
        schema = pa.schema({"id": pa.string(), "amount": pa.int32()})
        table = DeltaTable.create(str(folder / "table"), schema)
        table.alter.add_constraint({"positive": "amount > 0"})
        for number, amount in enumerate((1, 0, 1)):
            self._order(number, "abc"[number], amount)
        # Order b is refused, and c waits behind it.
        same_process.catch_up(spark, folder)

        spec.write_text(REFUSED.format(""))
        self._order(3, "d", 1)
        with pytest.raises(
            CheckpointMismatch, match="2 batches of query 'copy' wait for sink 'delta:table'"
        ) as error:
            same_process.catch_up(spark, folder)
        assert "millstream deadletter replay copy" in error.value.fix
        table.update_incremental()
        table.alter.drop_constraint("positive")
        self.case: Case = (str(folder), REPLAY, "delta.committed", 1)

    def _order(self, number: int, id: str, amount: int) -> None:
        """One file with one order, read in the order of numbers."""
        file = self.folder / "in" / f"{number}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"id": id, "amount": amount}))
        os.utime(file, (BEGAN + number, BEGAN + number))


class WaitingProject:
    """A project whose sink in Postgres is away; `name` is that of its table."""

    def __init__(self, stack: Endpoints, folder: Path, name: str) -> None:
        self.stack, self.folder, self.name = stack, folder, name
        self._sink = outage.table(stack, name)
        self._url = self._sink["postgres"]["url"]
        self.batches = 0
        self.take_away()

    def take_away(self) -> None:
        """Let the sink be nowhere."""
        self._write(NOBODY)

    def bring_back(self) -> None:
        """Let the sink be where it is."""
        self._write(self._url)

    def add_batches(self, batches: int) -> None:
        """More to read."""
        outage.write_input(self.folder, batches, first=self.batches)
        self.batches += batches

    def dies(self, point: str, time: int) -> Case:
        """A run that dies there."""
        return (str(self.folder), dying_commands.RUN, point, time)

    def _write(self, url: str) -> None:
        sink = {"postgres": {**self._sink["postgres"], "url": url}}
        (self.folder / "pipeline.yml").write_text(yaml.safe_dump(outage.spec(self.folder, sink)))
