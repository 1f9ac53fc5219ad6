"""What a stream-stream join says of a side whose event time has no watermark any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Column, Growth, Join, Operator
from millstream.analysis.rules import ms209_unbounded_join
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from conftest import Plans


def explain(plans: Plans, side: Operator) -> str:
    """The reason, of a join of a side with a stream that has a watermark."""
    other = plans.marked(plans.stream())
    join = Join(
        0, "Join", "", (other, side), (*other.columns, *side.columns), is_streaming=True, growth=Growth.ROWS
    )
    (finding,) = ms209_unbounded_join.judge(plans.query(join, OutputMode.APPEND), None)
    return finding.why.partition(",")[0]


def test_an_aggregation_without_time_has_left_the_event_time_out(plans: Plans) -> None:
    # As if both columns were fields of one message.
    key = Column("id", "string", origins=frozenset({("orders", "ts")}))
    grouped = plans.grouped(plans.marked(plans.stream()), key)

    assert explain(plans, grouped) == "one side has no column of the event time 'ts' any more"


def test_a_time_that_is_computed_anew_has_lost_its_watermark(plans: Plans) -> None:
    below = plans.marked(plans.stream())
    time = Column("ts", "timestamp", origins=frozenset({("orders", "ts")}))
    made = plans.project(below, (time, plans.call("date_trunc", plans.leaf(below.columns[1]))))

    assert explain(plans, made) == "'ts' was recomputed and has lost its watermark"
