from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from millstream.diagnostics.finding import Span
from millstream.pipeline.model import Pipeline
from millstream.pipeline.spec_file import load_spec
from millstream.testing.model import Case, Crash, Expected, Feed, Record, Restart, Step
from millstream.testing.shuffle.splits import (
    Item,
    SplitBatch,
    draw_split,
    draw_splits,
    list_items,
    merge_runs,
    remove_items,
    single_batch,
    to_steps,
)

HERE = Span.point("test.yml")
SPEC = """
name: shop
sources:
  clicks:
    kafka: {bootstrap_servers: "localhost:9092", subscribe: clicks}
    schema: {id: string}
    keep: [partition]
  prices:
    parquet: prices
    schema: {id: string}
queries:
  all:
    from: clicks
    to: {memory: all}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "pipeline.yml").write_text(SPEC)
    loaded = load_spec(tmp_path / "pipeline.yml", {})
    assert loaded.pipeline is not None, loaded.findings
    return loaded.pipeline


def case(pipeline: Pipeline, *feeds: Feed) -> Case:
    steps = tuple(Step((feed,), Expected(), HERE) for feed in feeds)
    return Case("one", pipeline, "all", steps, Path("test.yml"), HERE)


inputs = some.lists(some.tuples(some.sampled_from("ab"), some.sampled_from("012")), max_size=25).map(
    lambda messages: tuple(Item(at, source, part, {"n": at}) for at, (source, part) in enumerate(messages))
)
seeds = some.integers(0, 2**32)


@given(inputs, seeds)
def test_every_row_comes_once(rows: tuple[Item, ...], seed: int) -> None:
    split = draw_split(rows, Random(seed))

    assert sorted(item for part in split for item in part.items) == [item.number for item in rows]


@given(inputs, seeds)
def test_order_is_kept_within_a_partition(rows: tuple[Item, ...], seed: int) -> None:
    items = [rows[item] for part in draw_split(rows, Random(seed)) for item in part.items]

    for name in {(item.source, item.partition) for item in rows}:
        numbers = [item.number for item in items if (item.source, item.partition) == name]
        assert numbers == sorted(numbers)


@given(inputs, seeds)
def test_no_batch_is_empty_and_the_first_does_not_restart(rows: tuple[Item, ...], seed: int) -> None:
    split = draw_split(rows, Random(seed))

    assert all(part.items for part in split)
    assert not (split and split[0].has_restart)


@given(inputs, seeds)
def test_a_seed_draws_the_same_splits(rows: tuple[Item, ...], seed: int) -> None:
    assert draw_splits(rows, 5, Random(seed)) == draw_splits(rows, 5, Random(seed))


@given(inputs, seeds)
def test_no_split_is_drawn_twice(rows: tuple[Item, ...], seed: int) -> None:
    split_batches = draw_splits(rows, 10, Random(seed))

    assert len(split_batches) == len(set(split_batches)) <= 10


def test_order_is_shuffled_across_partitions() -> None:
    rows = (Item(0, "a", "0", {}), Item(1, "a", "1", {}), Item(2, "b", "", {}))

    orders = {tuple(n for part in draw_split(rows, Random(seed)) for n in part.items) for seed in range(100)}

    assert len(orders) == 6


def test_splits_restart_and_crash() -> None:
    rows = tuple(Item(at, "a", "0", {}) for at in range(8))

    split_batches = [part for split in draw_splits(rows, 50, Random(1)) for part in split]

    assert any(part.has_restart for part in split_batches)
    assert {part.crash for part in split_batches} == {None, "before_sink", "after_sink"}


def test_a_few_rows_come_one_by_one_at_first() -> None:
    rows = tuple(Item(at, "a", "0", {}) for at in range(3))

    assert draw_splits(rows, 9, Random(1))[0] == (SplitBatch((0,)), SplitBatch((1,)), SplitBatch((2,)))


def test_one_row_cannot_be_split() -> None:
    assert draw_splits((Item(0, "a", "0", {}),), 9, Random(1)) == []


def test_a_split_without_rows_loses_the_batches_that_are_left_empty() -> None:
    split = (SplitBatch((0, 1)), SplitBatch((2,), has_restart=True), SplitBatch((3,)))

    assert remove_items(split, {0, 2}) == (SplitBatch((1,)), SplitBatch((3,)))


def test_input_is_numbered_through_all_steps(pipeline: Pipeline) -> None:
    items = list_items(
        case(pipeline, Feed({"clicks": ({"id": "a"}, {"id": "b"})}), Feed({"prices": ({"id": "c"},)}))
    )

    assert [(item.number, item.source) for item in items] == [(0, "clicks"), (1, "clicks"), (2, "prices")]


def test_partitions_are_those_of_messages_and_of_kept_columns(pipeline: Pipeline) -> None:
    records = (Record(b"", partition=2), {"id": "a", "partition": 2}, {"id": "b"})

    items = list_items(case(pipeline, Feed({"clicks": records, "prices": ({"id": "c"},)})))

    assert [item.partition for item in items] == ["/2", "/2", "/0", ""]


def test_a_split_becomes_steps_of_a_case() -> None:
    rows = (Item(0, "a", "0", {"n": 0}), Item(1, "b", "0", {"n": 1}), Item(2, "a", "0", {"n": 2}))

    steps = to_steps((SplitBatch((0, 1)), SplitBatch((2,), has_restart=True, crash="after_sink")), rows, HERE)

    assert steps[0].actions == (Feed({"a": ({"n": 0},), "b": ({"n": 1},)}),)
    assert steps[1].actions == (Restart(), Feed({"a": ({"n": 2},)}), Crash("after_sink"))


def test_all_in_one_batch_is_in_the_order_of_the_case() -> None:
    assert single_batch((Item(0, "a", "0", {}), Item(1, "b", "0", {}))) == (SplitBatch((0, 1)),)


def test_what_one_run_reads_is_put_together_from_its_restarts_and_crashes() -> None:
    split = (
        SplitBatch((2,)),
        SplitBatch((0,)),
        SplitBatch((1, 5), has_restart=True),
        SplitBatch((4,)),
        SplitBatch((3,), crash="before_sink"),
    )

    assert merge_runs(split) == (
        SplitBatch((2, 0)),
        SplitBatch((1, 5, 4), has_restart=True),
        SplitBatch((3,), has_restart=True),
    )
