"""Backfills killed around a commit, and the same ones again: each row is there once. One process dies for all."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import sweep
from commands import call, shared_spark
from recovery import dying_commands
from spark.backfill.conftest import Shop, order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

SPEC = """
name: shop
spark: {{spark.sql.shuffle.partitions: 2, spark.driver.memory: 1g, spark.master: "local[2]"}}
sources:
  orders:
    json: in
    schema: {{id: string, amount: int, at: timestamp}}
    watermark: {{event_time: at, delay_threshold: 10 minutes}}
queries:
  orders: {{to: {{{sink}}}}}
"""
IDS = list("abcd")
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


@dataclass(frozen=True)
class Killed:
    """Shops whose backfills were killed: one for each point, and one whose backfill is of batches."""

    shops: dict[str, Shop]
    of_batches: Shop
    postgres: str

    def ask(self, text: str) -> list[Any]:
        """The first column of a query's rows."""
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            cursor = connection.execute(text)
            return [row[0] for row in cursor.fetchall()] if cursor.description else []


@pytest.fixture(scope="module")
def killed(spark: SparkSession, stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """All of them in one process, each at its point."""
    shops = {point: Shop(tmp_path_factory.mktemp("shop"), spark) for point in POINTS}
    result = Killed(shops, Shop(tmp_path_factory.mktemp("shop"), spark), stack.postgres)
    for point, shop in shops.items():
        shop.add_lines(*(order(id, f"12:0{at}:00") for at, id in enumerate(IDS)))
        stream(shop, sink_of(point, stack))
        lose_all(result, point)
    stream_batches(result)
    cases = [(str(shop.folder), ("backfill",), point, 1) for point, shop in shops.items()]
    cases.append((str(result.of_batches.folder), FILL, "postgres.committed", 2))
    dying_commands.die(cases, tmp_path_factory.mktemp("dying") / "spark.log")
    return result


def table_of(point: str) -> str:
    return "killed_" + point.replace(".", "_")


def sink_of(point: str, stack: Endpoints) -> str:
    match point.partition(".")[0]:
        case "delta":
            return "delta: table"
        case "files":
            return "parquet: table"
    table = table_of(point)
    return f'postgres: {{url: "{stack.postgres}", table: {table}, ledger_schema: {table}}}'


def stream(shop: Shop, sink: str) -> None:
    """A run into this sink."""
    shop.spec = SPEC.format(sink=sink)
    (shop.folder / "pipeline.yml").write_text(shop.spec)
    shop.stream("orders")


def lose_all(killed: Killed, point: str) -> None:
    """Take the rows from the sink."""
    shop = killed.shops[point]
    match point.partition(".")[0]:
        case "delta":
            shop.delete("table")
        case "files":
            shutil.rmtree(shop.folder / "table")
        case _:
            killed.ask(f"TRUNCATE {table_of(point)}")


def stored_rows(killed: Killed, point: str) -> list[str]:
    """The ids in the sink."""
    kind = point.partition(".")[0]
    if kind == "postgres":
        return killed.ask(f"SELECT id FROM {table_of(point)} ORDER BY id")
    return [row[0] for row in killed.shops[point].rows("table", "delta" if kind == "delta" else "parquet")]


def stream_batches(killed: Killed) -> None:
    """A batch an order, then what a dump from before batch 1 gives back, with which no run starts."""
    shop = killed.of_batches
    sink = f'postgres: {{url: "{killed.postgres}", table: {SCHEMA}.orders, ledger_schema: {SCHEMA}}}'
    for at, id in enumerate(IDS):
        shop.add_lines(order(id, f"12:0{at}:00"))
        stream(shop, sink)
    killed.ask(f"DELETE FROM {SCHEMA}.orders WHERE id <> 'a'")
    killed.ask(f"DELETE FROM {SCHEMA}.ledger WHERE batch_id > 0")

    with shared_spark(shop.spark):
        refusal = call(shop.folder, "run", "--until-caught-up", "--no-page", env=os.environ)
    assert refusal.returncode == 3
    assert "lacks batches 1 to 3 of query 'orders'" in refusal.stderr
    assert "'millstream backfill orders --batches 1-3'" in refusal.stderr


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.timeout(600)
def test_a_backfill_that_was_killed_is_finished_by_the_next(point: str, killed: Killed) -> None:
    shop = killed.shops[point]

    report = shop.backfill()

    assert shop.compare("orders").is_equal
    assert stored_rows(killed, point) == IDS
    # What was committed before the kill is not written again.
    assert report.outcomes[0].added == (0 if "committed" in point else len(IDS))


@pytest.mark.timeout(600)
def test_a_backfill_of_batches_that_was_killed_leaves_each_of_them_once(killed: Killed) -> None:
    shop, ask = killed.of_batches, killed.ask

    assert ask(f"SELECT batch_id FROM {SCHEMA}.ledger ORDER BY 1") == [0, 1, 2]
    with shared_spark(shop.spark):
        result = call(shop.folder, *FILL, env=os.environ)
    assert result.returncode == 0, result.stderr

    shop.add_lines(order("e", "12:05:00"))
    shop.stream("orders")
    assert ask(f"SELECT id FROM {SCHEMA}.orders ORDER BY 1") == list("abcde")
    assert ask(f"SELECT batch_id FROM {SCHEMA}.ledger ORDER BY 1") == [0, 1, 2, 3, 4]

    # Its checkpoint goes with a query that is renamed, and the ledger knows it again.
    checkpoints = shop.folder / ".millstream" / "checkpoints"
    (checkpoints / "orders").rename(checkpoints / "purchases")
    shop.spec = shop.spec.replace("orders: {to:", "purchases: {from: orders, to:")
    shop.add_lines(order("f", "12:06:00"))
    shop.stream("purchases")
    assert ask(f"SELECT id FROM {SCHEMA}.orders ORDER BY 1") == list("abcdef")
