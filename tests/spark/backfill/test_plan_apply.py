"""`millstream plan --apply` in the session of the tests: what it asks, what it does, and a run after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.integrity.corruption import find_damage
from millstream.cli.main import cli
from millstream.engine.run import RunOptions
from spark.backfill.conftest import PARTITIONS, PROVIDER, order

if TYPE_CHECKING:
    from spark.backfill.conftest import Shop

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches", "commands")

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def plan(shop: Shop, *words: str, answers: str = "") -> Result:
    (shop.folder / "pipeline.yml").write_text(shop.spec)
    words = ("plan", "--apply", *words, "-f", str(shop.folder))
    return CliRunner().invoke(cli, words, input=answers, standalone_mode=False)


def test_a_question_about_the_past_is_asked_and_the_answer_is_done(shop: Shop) -> None:
    shop.stream("sums")
    shop.spec = shop.spec.replace("'10 minutes')", "'1 hour')")

    skipped = plan(shop, "--select", "sums", answers="skip\n")
    assert skipped.return_value == 1
    asked = plan(shop, "--select", "sums", answers="backfill\n")

    assert "sums: silently wrong" in asked.stdout
    assert "replace the rows in the sinks with the result" in asked.stderr
    assert "sums: has a new checkpoint (backfill); the former one is" in asked.stdout
    assert asked.return_value == 0
    shop.stream("sums")
    assert [(since.strftime("%H:%M"), n) for since, n, _ in shop.rows("sums")] == [("12:00", 4), ("13:00", 1)]


def test_without_questions_the_past_must_be_named_and_possible(shop: Shop) -> None:
    shop.stream("copy")
    shop.spec = shop.spec.replace("from: orders", "from: unique").replace(
        "views:\n", "views:\n  unique: SELECT DISTINCT * FROM orders\n"
    )

    unnamed = plan(shop, "--select", "copy", "--yes")
    impossible = plan(shop, "--select", "copy", "--yes", "--past", "backfill")

    assert "--yes does not say what happens to its rows" in str(unnamed.exception)
    assert "cannot begin with a new checkpoint and '--past backfill': parquet" in str(impossible.exception)
    assert Checkpoint(shop.folder / "checkpoints" / "copy").committed() == 0


def test_rows_that_delete_others_cannot_be_replaced_and_the_checkpoint_stays(shop: Shop) -> None:
    shop.spec = shop.spec.replace("merge_on: [since]", 'merge_on: [since], delete_when: "n = 0"')
    shop.stream("sums")
    checkpoint = Checkpoint(shop.folder / "checkpoints" / "sums")
    before = checkpoint.query_id(), checkpoint.committed()
    shop.spec = shop.spec.replace("'10 minutes')", "'1 hour')")

    result = plan(shop, "--select", "sums", "--yes", "--past", "backfill")

    assert "its rows cannot be compared with the result" in str(result.exception)
    assert "(delete_when)" in str(result.exception)
    assert (checkpoint.query_id(), checkpoint.committed()) == before


def test_a_renamed_query_keeps_its_place(shop: Shop) -> None:
    shop.stream("copy")
    shop.spec = shop.spec.replace("  copy:", "  copies:")

    result = plan(shop, "--select", "copies", "--yes")

    assert "copies: has the checkpoint" in result.stdout
    assert result.return_value == 0
    shop.add_lines(order("f", "13:10:00"))
    shop.stream("copies")
    assert [row[0] for row in shop.rows("copy")] == ["a", "b", "c", "d", "e", "f"]


def test_state_in_rocksdb_is_repartitioned_and_the_windows_go_on(shop: Shop) -> None:
    head = f"name: shop\nspark: {{{PROVIDER}: {ROCKSDB}, {PARTITIONS}: '2'}}"
    shop.spec = shop.spec.replace("name: shop", head)
    plan(shop, "--select", "sums")
    shop.stream("sums")
    shop.spec = shop.spec.replace(f"{PARTITIONS}: '2'", f"{PARTITIONS}: '3'")

    result = plan(shop, "--select", "sums", "--yes")

    assert "sums: its state has 3 partitions" in result.stdout, (result.stdout, result.exception)
    shop.add_lines(order("f", "13:05:00", 1))
    shop.stream("sums")
    assert [(since.strftime("%H:%M"), n) for since, n, _ in shop.rows("sums")][-1] == ("13:00", 2)
    assert len(list((shop.folder / "checkpoints" / "sums" / "state" / "0").glob("[0-9]*"))) == 3


def test_state_that_has_fewer_partitions_is_not_taken_for_damaged(shop: Shop) -> None:
    checkpoint = shop.folder / "checkpoints" / "sums"
    head = f"name: shop\nspark: {{{PROVIDER}: {ROCKSDB}, {PARTITIONS}: '3'}}"
    shop.spec = shop.spec.replace("name: shop", head)
    plan(shop, "--select", "sums")
    shop.stream("sums")
    shop.spec = shop.spec.replace(f"{PARTITIONS}: '3'", f"{PARTITIONS}: '2'")

    result = plan(shop, "--select", "sums", "--yes")

    assert "sums: its state has 2 partitions" in result.stdout, (result.stdout, result.exception)
    assert find_damage(checkpoint) == []
    assert len(list((checkpoint / "state" / "0").glob("[0-9]*"))) == 3, "Spark leaves the third folder"
    shop.add_lines(order("f", "13:05:00", 1))
    shop.stream("sums")
    assert [(since.strftime("%H:%M"), n) for since, n, _ in shop.rows("sums")][-1] == ("13:00", 2)
    assert find_damage(checkpoint) == []


def test_state_in_files_is_left_as_it_is(shop: Shop) -> None:
    shop.spec = shop.spec.replace("name: shop", f"name: shop\nspark: {{{PARTITIONS}: '2'}}")
    plan(shop, "--select", "sums")
    shop.stream("sums")
    shop.spec = shop.spec.replace(f"{PARTITIONS}: '2'", f"{PARTITIONS}: '3'")

    result = plan(shop, "--select", "sums", "--yes")

    assert "sums: repartition" in result.stdout
    assert "Spark repartitions only state in RocksDB" in result.stdout
    assert result.return_value == 1


def test_a_rewound_checkpoint_reads_the_later_batches_again_and_replaces_their_rows(shop: Shop) -> None:
    shop.spec = shop.spec.replace("json: in", "json: {path: in, max_files_per_trigger: 1}")
    shop.stream("sums")
    before = shop.rows("sums")
    (shop.folder / "pipeline.yml").write_text(shop.spec)

    words = ("checkpoint", "rewind", "sums", "--to-batch", "0", "-f", str(shop.folder))
    result = CliRunner().invoke(cli, words, standalone_mode=False)
    assert "sums: continues after batch 0" in result.stdout, result.exception
    pipeline = shop.loaded().pipeline
    assert pipeline is not None
    assert not shop.run(pipeline, RunOptions(select=("sums",), until_caught_up=True))
    shop.add_lines(order("f", "13:02:00", 1))
    assert shop.run(pipeline, RunOptions(select=("sums",), until_caught_up=True, adopt=True))

    assert shop.rows("sums")[:-1] == before[:-1]
    assert shop.rows("sums")[-1][1:] == (2, 8)


def test_another_query_of_the_same_rows_does_not_get_the_place_of_one_that_was_removed(shop: Shop) -> None:
    shop.stream("copy")
    shop.spec = (
        shop.spec.replace("  copy:", "  other:")
        .replace("delta: copy", "delta: elsewhere")
        .replace("parquet: files", "parquet: others")
    )

    result = plan(shop, "--select", "other", "--yes")

    assert "has the checkpoint" not in result.stdout
    shop.stream("other")
    assert [row[0] for row in shop.rows("elsewhere")] == ["a", "b", "c", "d", "e"]
