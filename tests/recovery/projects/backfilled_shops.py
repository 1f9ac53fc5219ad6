"""Shops that a backfill has to give back what was lost: one for each failpoint of a sink, and one by batches."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import psycopg

import sweep
from commands import call, shared_spark
from delta_tables import read_parquet_rows, read_rows
from spark.backfill.conftest import Shop, order

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints
    from recovery.dying_commands import Case

SPEC = """
name: shop
spark: {{spark.sql.shuffle.partitions: 1, spark.driver.memory: 1g, spark.master: "local[2]"}}
sources:
  orders:
    json: {{path: in, max_files_per_trigger: 1}}
    schema: {{id: string, amount: int, at: timestamp}}
    watermark: {{event_time: at, delay_threshold: 10 minutes}}
queries:
  orders: {{to: {{{sink}}}}}
"""
IDS = list("abcd")
ROWS = [(id_, 1, f"{minute:02}") for minute, id_ in enumerate(IDS)]
SCHEMA = "killed_batches"
FILL = ("backfill", "orders", "--batches", "1-3")


def sink_and_moment(point: str) -> list[object]:
    """Each sink, and before and after a commit; each point itself is met by other tests of this folder."""
    sink, _, moment = point.partition(".")
    return [sink, moment == "committed"]


POINTS = sweep.covering(
    [
        "delta.before",
        "delta.committed",
        "files.staged",
        "files.committed",
        "postgres.open",
        "postgres.committed",
    ],
    sink_and_moment,
    "backfills",
)


class BackfilledShops:
    """The shops by their point, each with a sink that lost all its rows, and one whose sink lacks batches."""

    def __init__(self, spark: SparkSession, stack: Endpoints, new_folder: Callable[[], Path]) -> None:
        self.postgres = stack.postgres
        self.shops = {point: Shop(new_folder(), spark) for point in POINTS}
        self.by_batches = Shop(new_folder(), spark)
        for point, shop in self.shops.items():
            shop.add_lines(*(order(id, f"12:0{at}:00") for at, id in enumerate(IDS)))
            self._stream(shop, self._sink(point))
            self._lose_all(point)
        self._stream_batches()

    @property
    def cases(self) -> list[Case]:
        """Every backfill, and where it is killed."""
        cases: list[Case] = [
            (str(shop.folder), ("backfill",), point, 1) for point, shop in self.shops.items()
        ]
        return [*cases, (str(self.by_batches.folder), FILL, "postgres.committed", 2)]

    def ask(self, text: str) -> list[Any]:
        """The first column of a query's rows."""
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            cursor = connection.execute(text)
            return [row[0] for row in cursor.fetchall()] if cursor.description else []

    def rows(self, point: str) -> list[tuple[str, int, str]]:
        """What the sink of a point's shop has: id, amount and minute."""
        kind, columns = point.partition(".")[0], ("id", "amount", "at")
        if kind == "postgres":
            with psycopg.connect(self.postgres) as connection:
                rows = connection.execute(f"SELECT {', '.join(columns)} FROM {_table(point)}").fetchall()
        else:
            read = read_rows if kind == "delta" else read_parquet_rows
            rows = read(self.shops[point].folder / "table", *columns)
        return sorted((id_, amount, f"{at:%M}") for id_, amount, at in rows)

    def _sink(self, point: str) -> str:
        match point.partition(".")[0]:
            case "delta":
                return "delta: table"
            case "files":
                return "parquet: table"
        table = _table(point)
        return f'postgres: {{url: "{self.postgres}", table: {table}, ledger_schema: {table}}}'

    def _stream(self, shop: Shop, sink: str) -> None:
        """Run into this sink."""
        shop.spec = SPEC.format(sink=sink)
        (shop.folder / "pipeline.yml").write_text(shop.spec)
        shop.stream("orders")

    def _lose_all(self, point: str) -> None:
        """Take the rows from the sink."""
        shop = self.shops[point]
        match point.partition(".")[0]:
            case "delta":
                shop.delete("table")
            case "files":
                shutil.rmtree(shop.folder / "table")
            case _:
                self.ask(f"TRUNCATE {_table(point)}")

    def _stream_batches(self) -> None:
        """A batch an order, then what a dump from before batch 1 gives back, with which no run starts."""
        shop = self.by_batches
        sink = f'postgres: {{url: "{self.postgres}", table: {SCHEMA}.orders, ledger_schema: {SCHEMA}}}'
        for at, id in enumerate(IDS):
            shop.add_lines(order(id, f"12:0{at}:00"))
        self._stream(shop, sink)
        self.ask(f"DELETE FROM {SCHEMA}.orders WHERE id <> 'a'")
        self.ask(f"DELETE FROM {SCHEMA}.ledger WHERE batch_id > 0")

        with shared_spark(shop.spark):
            refusal = call(shop.folder, "run", "--until-caught-up", "--no-page", env=os.environ)
        assert refusal.returncode == 3, refusal.both
        assert "lacks batches 1 to 3 of query 'orders'" in refusal.stderr
        assert "'millstream backfill orders --batches 1-3'" in refusal.stderr


def _table(point: str) -> str:
    return "killed_" + point.replace(".", "_")
