"""Find the conditions of expectations in the filter that drops the rows that fail them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checking.query_plan.expressions.expressions import parse_fields
from millstream.checking.query_plan.plan_nodes import UNKNOWN_SHAPE
from millstream.frames.expectations import BROKEN

if TYPE_CHECKING:
    from millstream.checking.query_plan.expressions.expressions import ParsedExpression
    from millstream.checking.query_plan.plan_nodes import PlanNode


def read_expectations(node: PlanNode) -> dict[str, ParsedExpression]:
    """Return the conditions that a filter requires, by the names of their expectations.

    Empty for any other node. Below the filter of `apply_expectations` are a metric, whose fields have the names, and
    a projection with an array of flags, `NOT coalesce(condition, false)`, which the filter reads by their numbers.
    """
    if node.kind != "Filter":
        return {}
    try:
        (condition,) = parse_fields(node.fields, node.java)["condition"]
        numbers = {
            int(part.inputs[1].entry["value"])
            for part in condition.walk()
            if part.kind == "GetArrayItem" and part.inputs[0].name == BROKEN
        }
        if not numbers:
            return {}
        metric = node.children[0]
        projection = metric.children[0]
        names = [item.name for item in parse_fields(metric.fields, metric.java)["metrics"]]
        columns = parse_fields(projection.fields, projection.java)["projectList"]
        flags = next(column.bare.inputs for column in columns if column.name == BROKEN)
        return {names[number]: flags[number].inputs[0].inputs[0] for number in sorted(numbers)}
    except UNKNOWN_SHAPE:
        return {}
