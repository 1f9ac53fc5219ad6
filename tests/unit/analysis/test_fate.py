"""What time, a late row and a crash do to a query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Operator
from millstream.analysis.fate import EMPTY_BATCHES, POLICY, clock, crash, fresh, late
from millstream.analysis.guarantee import promises
from millstream.pipeline.graph import Graph
from millstream.pipeline.load import load_text
from unit.analysis.plans import ID, MINUTE, marked, planned, read, windowed

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline

BOTH = Operator(4, "Union", "", (marked(), marked("clicks", 2 * MINUTE)), (ID,), streaming=True)
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
    told = clock(planned(marked()))

    assert told == [
        "its watermark is 5 minutes behind 'ts' of 'orders'; it moves between batches, never within one"
    ]


def test_of_several_watermarks_the_least_counts_and_a_silent_input_holds_it() -> None:
    told = clock(planned(BOTH))

    assert told[0].startswith(
        "its watermark is the least of 2: 5 minutes behind 'ts' of 'orders' and 2 minutes"
    )
    assert told[1].startswith("an input that falls silent holds it")


def test_the_policy_max_takes_the_greatest() -> None:
    told = clock(planned(BOTH, spark={POLICY: "max"}))

    assert told[0].startswith("its watermark is the greatest of 2")


def test_a_run_that_ends_by_itself_leaves_windows_open() -> None:
    told = clock(planned(windowed(), trigger="available_now"))

    assert told[-1] == "a run that ends by itself leaves what the watermark has not passed to the next run"


def test_without_empty_batches_results_wait_for_rows() -> None:
    told = clock(planned(windowed(), spark={EMPTY_BATCHES: "false"}))

    assert told[-1].startswith("no batch runs without rows")


def test_without_a_watermark_no_row_is_late() -> None:
    assert late(planned(read())) == ["there is none: without a watermark every row counts, however old"]


def test_a_watermark_that_nothing_waits_for_drops_nothing() -> None:
    assert late(planned(marked())) == ["no operator drops one: a row counts however old it is"]


def test_a_late_row_is_told_with_the_operator_that_drops_it_and_where_it_is_counted() -> None:
    told = late(planned(windowed(view="per_minute")))

    assert told[0].startswith("in the aggregation of 'per_minute': dropped when its window has ended")
    assert "numRowsDroppedByWatermark" in told[1]


def test_a_crash_tells_what_is_read_again_and_what_each_sink_does_with_it() -> None:
    shop = pipeline()

    told = crash(Graph.of(shop), "q", promises(shop), planned(windowed()))

    assert told == [
        "the batch in progress runs again first: its offsets are in the checkpoint, its commit is not",
        "it reads 'orders' again, from the same offsets to the same offsets",
        "what it had of 'ticks' is lost: that source cannot be read again",
        "its state goes back to the end of the batch before",
        "delta lake/rows passes over the batch if it has committed it already",
        "console may get the batch's rows a second time",
        "sinks are written one after the other: after the crash each has the batch, or gets it",
    ]


def test_where_a_fresh_checkpoint_starts_is_told_of_sources_that_let_one_choose() -> None:
    told = fresh(Graph.of(pipeline()), "q")

    assert told[0].startswith("'orders' starts at the oldest records")
    assert told[-1].endswith("these settings count for a fresh one alone")
