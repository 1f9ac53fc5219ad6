"""When a query has to be stopped for a backfill of its sinks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.analysis.query.plan_model import Aggregate, Operator, PlannedQuery
from millstream.backfill.options import BackfillOptions
from millstream.backfill.targets import BackfillTarget, requires_stopped_query
from millstream.pipeline.spec_file import load_text
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from millstream.connectors.api.sink import Sink

SPEC = """
name: shop
sources:
  orders: {json: in, schema: {id: string}}
queries:
  orders: {to: [{delta: lake}, {delta: {path: keyed, merge_on: [id]}}]}
"""
WITHOUT_DELAY = PlannedQuery("orders", Operator(0, "Project", ""), OutputMode.UPDATE, Trigger())
DELAYED = PlannedQuery(
    "orders", Aggregate(0, "Aggregate", "", is_streaming=True), OutputMode.UPDATE, Trigger()
)


def targets(*, keyed: bool, side: bool = False) -> list[BackfillTarget]:
    pipeline = load_text("pipeline.yml", SPEC, Path("/shop"), {}).pipeline
    assert pipeline is not None
    sink: Sink = pipeline.queries["orders"].to[int(keyed)].sink
    return [BackfillTarget("orders", "key", sink, OutputMode.UPDATE, side)]


@pytest.mark.parametrize(
    ("keyed", "options"),
    [
        (True, BackfillOptions()),
        (True, BackfillOptions(replace=True)),
        (False, BackfillOptions(replace=True)),
    ],
)
def test_a_query_that_may_write_a_row_at_any_time_is_stopped_before_rows_are_replaced(
    options: BackfillOptions, *, keyed: bool
) -> None:
    assert requires_stopped_query(WITHOUT_DELAY, targets(keyed=keyed), options)
    # Its rows are compared only once they are final, or are those of another table.
    assert not requires_stopped_query(DELAYED, targets(keyed=keyed), options)
    assert not requires_stopped_query(WITHOUT_DELAY, targets(keyed=keyed, side=True), options)


def test_a_query_may_run_while_rows_are_only_added_or_compared() -> None:
    assert not requires_stopped_query(WITHOUT_DELAY, targets(keyed=False), BackfillOptions())
    for options in (BackfillOptions(compare=True), BackfillOptions(is_dry_run=True)):
        assert not requires_stopped_query(WITHOUT_DELAY, targets(keyed=True), options)
