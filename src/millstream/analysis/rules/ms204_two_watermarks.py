"""A stream has a second watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Aggregate, StatefulFunction, WatermarkOperator
from millstream.analysis.rule_context import Code
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Operator, PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
# If it is false, Spark has one watermark for all operators, as before 3.4, and accepts a second one.
_SEVERAL_OPERATORS = "spark.sql.streaming.statefulOperator.allowMultiple"


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Report each watermark above another one. Watermarks of two branches that are joined later are correct.

    Above an aggregation in append mode the query does not fail, but waits forever.
    """
    if query.spark.get(_SEVERAL_OPERATORS, "true").lower() == "false":
        return
    for upper in query.of(WatermarkOperator):
        lower, is_above_aggregate = _find_lower_watermark(upper, aggregated=False)
        if lower is None:
            continue
        is_stuck = is_above_aggregate and query.output_mode is OutputMode.APPEND
        yield CODE.error(
            f"{event_time.owner_label(query, upper)} has a second watermark, on '{upper.event_time}', "
            f"in addition to the one on '{lower.event_time}'",
            event_time.find_span(query, upper),
            label="declared again here",
            why=(
                "the query follows the slower watermark, and the second one gets its first row only after the "
                "first has advanced: no row is ever output"
                if is_stuck
                else "Spark fails after one batch, when the first watermark has advanced: it must not be redefined"
            ),
            fix=f"remove this watermark: the windows keep the one on '{lower.event_time}'"
            if is_stuck
            else f"declare only one of them: the watermark on '{lower.event_time}', or this one",
            query=query.name,
        )


def _find_lower_watermark(operator: Operator, *, aggregated: bool) -> tuple[WatermarkOperator | None, bool]:
    """Return the next watermark below, and whether there is an aggregation in between."""
    for child in operator.inputs:
        if isinstance(child, WatermarkOperator) and child.is_streaming:
            return child, aggregated
        if isinstance(child, StatefulFunction) and _ends_watermark(child):
            continue
        result = _find_lower_watermark(child, aggregated=aggregated or isinstance(child, Aggregate))
        if result[0]:
            return result
    return None, False


def _ends_watermark(function: StatefulFunction) -> bool:
    """Return whether rows have no watermark above a stateful function, as Spark knows nothing of their times."""
    return function.timeout == "processing_time" or not function.node.startswith("TransformWithState")
