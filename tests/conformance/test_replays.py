"""The last commit of a checkpoint is deleted and the query started again: no sink changes, whatever its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import sweep
from conformance.replays import Shop, Way, ways
from conformance.targets import ordered, writers
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from conformance.targets import Row

# The first test waits for six runs of some six queries, fifteen in a whole sweep.
pytestmark = [pytest.mark.timeout(400), pytest.mark.usefixtures("interpreted", "small_batches")]


def variants(way: Way) -> list[object]:
    """A writer with its settings, and each mode: test_sinks.py repeats a batch with each writer in each mode."""
    writer, mode = writers(way.case)
    return [(writer, *(name for name, _ in way.settings)), mode]


WAYS = sweep.covering(ways(), variants, "replays")
Told = dict[OutputMode, tuple[Shop, dict[str, list["Row"]], dict[str, list["Row"]]]]


@pytest.fixture(scope="module")
def list_events(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Told:
    """What each sink held before its last batch came again, and after; by mode."""
    actual: Told = {}
    for mode in OutputMode:
        shop = Shop(tmp_path_factory.mktemp(mode.value), spark, mode, request, tuple(WAYS))
        shop.add_rows("1.json", ("a", "1"), ("b", "2"))
        shop.add_rows("2.json", ("c", "3"), ("d", "gone"))
        assert shop.run(), shop.failures()
        before = shop.rows()
        shop.forget_last_commits()
        assert shop.run(), shop.failures()
        actual[mode] = shop, before, shop.rows()
    return actual


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_batch_whose_commit_is_gone_changes_no_sink(list_events: Told, way: Way) -> None:
    shop, before, after = list_events[way.case.mode]
    remaining, received = before[way.query], after[way.query]
    keeps, _ = shop.targets[way.query].sink.guarantee(way.case.mode)

    if keeps in (Guarantee.AT_LEAST_ONCE, Guarantee.EFFECTIVELY_ONCE):
        remaining, received = ordered(set(remaining)), ordered(set(received))
    assert remaining
    assert received == remaining


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_each_of_them_had_a_batch_that_came_again(list_events: Told, way: Way) -> None:
    shop, _, _ = list_events[way.case.mode]

    batches = [
        event.data["batch"]
        for event in shop.events
        if (event.event, event.query) == ("batch_committed", way.query)
    ]

    assert len(batches) > len(set(batches))
