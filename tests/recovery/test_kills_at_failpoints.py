"""Writers and commands that are killed at their failpoints, and what the next start makes of it.

One process dies for all.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
import pytest

import sweep
from commands import call, shared_spark
from delta_tables import read_parquet_rows, read_rows
from millstream.connectors import registry
from millstream.connectors.api.dead_letters import read_unique
from millstream.spec.output_mode import OutputMode
from recovery import dying_commands, outage, same_process
from recovery.dying_writer import ROWS, batch
from recovery.projects import backfilled_shops, changed_shop, letter_projects
from recovery.projects.backfilled_shops import FILL, IDS, SCHEMA, BackfilledShops
from recovery.projects.letter_projects import LetterProjects
from recovery.projects.swapped_sinks import SwappedSinks, ask
from recovery.projects.waiting_projects import REPLAY, RefusedBatch, WaitingProject
from recovery.projects.written_sinks import (
    ALL,
    CHANGES,
    DELTA,
    FILES,
    LAST,
    OTHERS,
    POSTGRES,
    WrittenSinks,
    start_again,
)
from spark.backfill.conftest import Shop, order

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

pytestmark = pytest.mark.timeout(900)

# In a part: with the checkpoint replaced and the rows not. spark/backfill/test_fresh_start.py fails at the others.
APPLY_POINTS = ["renewal.replaced"]
if sweep.WHOLE:
    APPLY_POINTS += ["renewal.prepared", "renewal.filled", "delta.committed"]
# Deliveries of what waits; in a part that of `RefusedBatch` is killed, and those of test_delivery_walks.py are.
REPLAY_POINTS = ("postgres.staged", "postgres.open", "postgres.committed", "aside.delivered")
BATCHES = 4


@dataclass(frozen=True)
class Killed:
    """Sinks and projects as one killed process left them."""

    written: WrittenSinks
    backfilled: BackfilledShops
    changed: dict[str, Shop]
    """Shops with longer windows, by the point at which `plan --apply` was killed."""
    letters: LetterProjects
    swapped: SwappedSinks
    refused: RefusedBatch
    set_aside: WaitingProject
    """Killed with the second batch set aside and not committed."""
    delivered: WaitingProject
    """Killed in a run that delivers what waits, in the second of these batches."""


@pytest.fixture(scope="module")
def killed(
    spark: SparkSession,
    stack: Endpoints,
    small_batches: None,  # noqa: ARG001 - the settings with which the first runs write
    tmp_path_factory: pytest.TempPathFactory,
) -> Killed:
    """All of them, after their deaths."""

    def new_folder() -> Path:
        return tmp_path_factory.mktemp("killed")

    result = Killed(
        WrittenSinks(stack, new_folder()),
        BackfilledShops(spark, stack, new_folder),
        {point: changed_shop.run_and_change(Shop(new_folder(), spark)) for point in APPLY_POINTS},
        LetterProjects(stack, new_folder),
        SwappedSinks(stack, new_folder()),
        RefusedBatch(spark, new_folder()),
        WaitingProject(stack, new_folder(), "killed_set_aside"),
        WaitingProject(stack, new_folder(), "killed_delivered"),
    )
    result.set_aside.add_batches(BATCHES)
    result.delivered.add_batches(2)
    same_process.catch_up(spark, result.delivered.folder)
    result.delivered.bring_back()
    result.delivered.add_batches(2)
    log = new_folder() / "spark.log"
    dying_commands.die(
        [
            *result.backfilled.cases,
            *((str(shop.folder), changed_shop.APPLY, point, 1) for point, shop in result.changed.items()),
            result.swapped.case,
            result.refused.case,
            # What waits in these two is also delivered beside the batches: they come behind other cases of Postgres.
            *result.letters.cases()[:-1],
            result.set_aside.dies("aside.kept", 2),
            result.delivered.dies("aside.delivered", 2),
            result.letters.cases()[-1],
        ],
        log,
        result.written.cases,
        LAST,
    )
    for death in range(1, letter_projects.DEATHS):
        dying_commands.die(result.letters.cases(death), log)
    return result


@pytest.mark.parametrize(("mode", "key", "point", "held"), POSTGRES)
def test_postgres_holds_each_row_once(
    mode: str, key: tuple[str, ...], point: str, held: bool, killed: Killed, spark: SparkSession
) -> None:
    settings = killed.written.settings(f"postgres-{mode}-{point}")

    start_again(settings, mode, spark, held=held)

    with psycopg.connect(killed.written.stack.postgres) as connection:
        rows = connection.execute(f"SELECT id FROM {settings[1]['table']} ORDER BY id").fetchall()
    assert settings[1]["merge_on"] == key
    assert [row[0] for row in rows] == ALL


@pytest.mark.parametrize(("mode", "key", "committed"), DELTA)
def test_delta_holds_each_row_once(
    mode: str, key: tuple[str, ...], committed: bool, killed: Killed, spark: SparkSession
) -> None:
    if committed:
        settings = killed.written.settings(f"delta-{mode}-True")
    else:
        settings = killed.written.delta_without_last_commit(mode)

    start_again(settings, mode, spark, held=committed)

    assert settings[1]["merge_on"] == key
    assert sorted(id_ for (id_,) in read_rows(settings[1]["path"], "id")) == ALL


@pytest.mark.parametrize("held", CHANGES)
def test_a_delta_table_of_changes_comes_to_the_same_rows(
    held: bool, killed: Killed, spark: SparkSession
) -> None:
    """Killed with the batch's deletions kept and its rows not committed, or with both."""
    settings = killed.written.settings(f"changes-append-{held}")

    start_again(settings, "append", spark, held=held)

    rows = read_rows(settings[1]["path"], "id")
    assert sorted(id_ for (id_,) in rows) == [number for number in ALL if number % 10]


@pytest.mark.parametrize(("point", "held"), FILES)
def test_folders_of_batches_hold_each_row_once(
    point: str, held: bool, killed: Killed, spark: SparkSession
) -> None:
    settings = killed.written.settings(f"files-update-{point}")
    folder = settings[1]["path"]

    before = {id_ for (id_,) in read_parquet_rows(folder, "id")}
    start_again(settings, "update", spark, held=held)

    assert before == set(ALL if held else ALL[: ROWS * LAST])
    assert sorted(id_ for (id_,) in read_parquet_rows(folder, "id")) == ALL


@pytest.mark.parametrize(("kind", "point"), OTHERS)
def test_any_other_kind_holds_each_row_once(
    kind: str, point: str, killed: Killed, spark: SparkSession
) -> None:
    settings = killed.written.settings(f"{kind}-append-{point}")

    start_again(settings, "append", spark, held=point.endswith(".committed"))

    rows = (
        registry.sinks()[kind]
        .model_validate(settings[1])
        .read_all(spark, batch(spark, 0).schema, OutputMode.APPEND)
    )
    assert rows is not None
    assert sorted(row.id for row in rows.collect()) == ALL


@pytest.mark.parametrize("point", backfilled_shops.POINTS)
def test_a_backfill_that_was_killed_is_finished_by_the_next(point: str, killed: Killed) -> None:
    shop = killed.backfilled.shops[point]

    report = shop.backfill()

    assert killed.backfilled.rows(point) == backfilled_shops.ROWS
    # What was committed before the kill is not written again.
    assert report.outcomes[0].added == (0 if "committed" in point else len(IDS))


def test_a_backfill_of_batches_that_was_killed_leaves_each_of_them_once(killed: Killed) -> None:
    shop, ask_column = killed.backfilled.by_batches, killed.backfilled.ask

    assert ask_column(f"SELECT batch_id FROM {SCHEMA}.ledger ORDER BY 1") == [0, 1, 2]
    with shared_spark(shop.spark):
        result = call(shop.folder, *FILL, env=os.environ)
    assert result.returncode == 0, result.stderr

    shop.add_lines(order("e", "12:05:00"))
    shop.stream("orders")
    assert ask_column(f"SELECT id FROM {SCHEMA}.orders ORDER BY 1") == list("abcde")
    assert ask_column(f"SELECT batch_id FROM {SCHEMA}.ledger ORDER BY 1") == [0, 1, 2, 3, 4]

    # Its checkpoint goes with a query that is renamed, and the ledger knows it again.
    checkpoints = shop.folder / ".millstream" / "checkpoints"
    (checkpoints / "orders").rename(checkpoints / "purchases")
    shop.spec = shop.spec.replace("orders: {to:", "purchases: {from: orders, to:")
    shop.add_lines(order("f", "12:06:00"))
    shop.stream("purchases")
    assert ask_column(f"SELECT id FROM {SCHEMA}.orders ORDER BY 1") == list("abcdef")


@pytest.mark.parametrize("point", APPLY_POINTS)
def test_a_renewed_checkpoint_is_finished_by_the_next_plan_apply(killed: Killed, point: str) -> None:
    changed_shop.finish(killed.changed[point])


def test_two_sinks_of_one_name_keep_their_ledgers_when_their_order_changes(
    killed: Killed, spark: SparkSession
) -> None:
    project = killed.swapped
    project.rename_as_an_older_version()
    fence = "SELECT writer, epoch FROM millstream.fence"
    before = [ask(url, fence) for url in project.urls]

    project.swap()
    same_process.catch_up(spark, project.folder)

    for url, fences in zip(project.urls, before, strict=True):
        assert ask(url, "SELECT id FROM orders ORDER BY id") == [("row 0",), ("row 1",)]
        assert ask(url, fence) == [(writer, epoch + 1) for writer, epoch in fences]


def test_batches_that_wait_come_once_though_the_setting_was_taken_off_and_their_delivery_killed(
    killed: Killed, spark: SparkSession
) -> None:
    folder = killed.refused.folder

    with shared_spark(spark):
        replayed = call(folder, *REPLAY, env=os.environ)

    assert replayed.stdout.splitlines() == [
        "copy: batch 1 was in delta:table already",
        "copy: batch 2 delivered to delta:table",
    ]
    same_process.catch_up(spark, folder)
    assert sorted(id_ for (id_,) in read_rows(folder / "table", "id")) == ["a", "b", "c", "d"]


def test_each_row_that_was_set_aside_comes_once_and_in_order(
    killed: Killed, spark: SparkSession, tmp_path: Path
) -> None:
    project = killed.set_aside
    same_process.catch_up(spark, project.folder)
    project.bring_back()
    for point in REPLAY_POINTS if sweep.WHOLE else ():
        # Each dies a step further in its first batch.
        dying_commands.die([(str(project.folder), REPLAY, point, 1)], tmp_path / "spark.log")

    same_process.replay_all(spark, project.folder)

    assert outage.in_table(project.stack, project.name) == outage.expected_rows(project.batches)


def test_each_row_that_a_run_delivers_comes_once_and_in_order(killed: Killed, spark: SparkSession) -> None:
    project = killed.delivered

    same_process.catch_up(spark, project.folder)
    same_process.replay_all(spark, project.folder)

    assert outage.in_table(project.stack, project.name) == outage.expected_rows(project.batches)


@pytest.mark.parametrize("kind", letter_projects.POINTS)
def test_each_dead_letter_is_kept_once(kind: str, killed: Killed, spark: SparkSession) -> None:
    folder = killed.letters.folders[kind]

    same_process.catch_up(spark, folder)

    store = registry.dead_letter_stores()[kind].model_validate(killed.letters.stores[kind])
    assert sorted(json.loads(letter.value or b"")["key"] for letter in read_unique(store)) == [
        f"{what} {n}" for what in ("bad", "low") for n in range(letter_projects.BATCHES)
    ]
    assert sorted(read_rows(folder / "table")) == [(key, letter_projects.BATCHES - 1) for key in outage.KEYS]
