"""The effect of time, late rows and a crash on a query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.analysis.explain.runtime_behaviour import (
    EMPTY_BATCHES,
    POLICY,
    describe_crash,
    describe_late_rows,
    describe_new_checkpoint,
    describe_state_store,
    describe_watermark,
)
from millstream.analysis.query.delivery_guarantee import compute_guarantees
from millstream.analysis.query.plan_model import Operator
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.spec_file import load_text
from millstream.pipeline.stateful import ROCKSDB, STORE
from unit.analysis.plans import ID, MINUTE, marked, planned, read, windowed

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline

BOTH = Operator(4, "Union", "", (marked(), marked("clicks", 2 * MINUTE)), (ID,), is_streaming=True)
SPEC = """name: shop
sources:
  orders: {kafka: {bootstrap_servers: "localhost:9092", subscribe: orders}, schema: {a: int}}
  ticks: {rate: 1}
views:
  q: SELECT a FROM orders UNION ALL SELECT value FROM ticks
queries:
  q: {to: [{delta: lake/rows}, {console: {}}]}
"""


def pipeline() -> Pipeline:
    loaded = load_text("pipeline.yml", SPEC, Path("nowhere"), {})
    assert loaded.pipeline is not None, loaded.findings
    return loaded.pipeline


def test_one_watermark_is_told_with_its_delay_and_source() -> None:
    result = describe_watermark(planned(marked()))

    assert result == [
        "its watermark is 5 minutes behind 'ts' of 'orders'; it advances between batches, never within one"
    ]


def test_of_several_watermarks_the_least_counts_and_a_silent_input_holds_it() -> None:
    result = describe_watermark(planned(BOTH))

    assert result[0].startswith(
        "its watermark is the minimum of 2: 5 minutes behind 'ts' of 'orders' and 2 minutes"
    )
    assert result[1].startswith("an input without new rows stops it")


@pytest.mark.parametrize(
    ("spark", "word"), [({}, "in the JVM's memory"), ({STORE: ROCKSDB}, "on disk, in RocksDB")]
)
def test_a_query_with_state_says_where_it_is(spark: dict[str, str], word: str) -> None:
    assert word in describe_state_store(planned(windowed(), spark=spark))[0]
    assert describe_state_store(planned(marked(), spark=spark)) == []


def test_the_policy_max_takes_the_greatest() -> None:
    result = describe_watermark(planned(BOTH, spark={POLICY: "max"}))

    assert result[0].startswith("its watermark is the maximum of 2")


def test_a_run_that_ends_by_itself_leaves_windows_open() -> None:
    result = describe_watermark(planned(windowed(), trigger="available_now"))

    assert (
        result[-1]
        == "a run that ends by itself leaves rows that the watermark has not passed to the next run"
    )


def test_without_empty_batches_results_wait_for_rows() -> None:
    result = describe_watermark(planned(windowed(), spark={EMPTY_BATCHES: "false"}))

    assert result[-1].startswith("no batch runs without rows")


def test_without_a_watermark_no_row_is_late() -> None:
    assert describe_late_rows(planned(read())) == [
        "there is none: without a watermark every row is processed, however old"
    ]


def test_a_watermark_that_nothing_waits_for_drops_nothing() -> None:
    assert describe_late_rows(planned(marked())) == [
        "no operator drops one: every row is processed, however old"
    ]


def test_a_late_row_is_told_with_the_operator_that_drops_it_and_where_it_is_counted() -> None:
    result = describe_late_rows(planned(windowed(view="per_minute")))

    assert result[0].startswith("in the aggregation of 'per_minute': dropped when its window has ended")
    assert "numRowsDroppedByWatermark" in result[1]


def test_a_crash_tells_what_is_read_again_and_what_each_sink_does_with_it() -> None:
    shop = pipeline()

    result = describe_crash(PipelineGraph.of(shop), "q", compute_guarantees(shop), planned(windowed()))

    assert result == [
        "the batch in progress runs again first: its offsets are in the checkpoint, its commit is not",
        "it reads 'orders' again, with the same start and end offsets",
        "the rows it had of 'ticks' are lost, because that source cannot be read again",
        "its state is restored to the end of the previous batch",
        "delta lake/rows skips the batch if it has already committed it",
        "console may get the batch's rows a second time",
        "sinks are written one after the other: after the crash each already has the batch, or gets it",
    ]


def test_where_a_fresh_checkpoint_starts_is_told_of_sources_that_let_one_choose() -> None:
    result = describe_new_checkpoint(PipelineGraph.of(pipeline()), "q")

    assert result[0].startswith("'orders' starts at the oldest records")
    assert result[-1].endswith("these settings apply only to a new one")
