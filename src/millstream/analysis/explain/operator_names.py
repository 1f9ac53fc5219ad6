"""Name the operators of a query in the words of Spark and the field: `watermark 5 minutes`, `deduplicate by id`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.analysis.explain import state_retention
from millstream.analysis.explain.plan_steps import PlanStep, count_union_inputs
from millstream.analysis.query.nondeterminism import is_stateful
from millstream.analysis.query.phrasing import format_duration, join_words
from millstream.analysis.query.plan_model import (
    Aggregate,
    BatchFunction,
    Deduplicate,
    Join,
    Limit,
    Read,
    StatefulFunction,
    StatefulOperator,
    WatermarkOperator,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.query.plan_model import Operator

_NODES = {
    "Project": "project",
    "Filter": "filter",
    "Generate": "explode",
    "Sort": "sort",
    "Expand": "grouping sets",
}


@dataclass(frozen=True)
class NamedOperator:
    """An operator by its name, its sentence, and how often the plan has it: equal branches are one."""

    name: str
    text: str
    times: int
    has_state: bool


def name_operators(steps: Sequence[PlanStep]) -> list[NamedOperator]:
    """Name the operators of a plan in order.

    Branches that are combined later are one list: first what they read, then each operator once with its number.
    """
    combined = next((at for at, step in enumerate(steps) if _is_combination(step.operator)), len(steps))
    return [*_fold(steps[:combined]), *_fold(steps[combined:])]


def _is_combination(operator: Operator) -> bool:
    return isinstance(operator, Join) or operator.node == "Union"


def _fold(steps: Sequence[PlanStep]) -> list[NamedOperator]:
    """Return the operators of some steps, each name once."""
    ordered = sorted(steps, key=lambda step: not isinstance(step.operator, Read))
    folded: dict[str, NamedOperator] = {}
    for step in ordered:
        name, has_state = name_operator(step.operator), _has_state(step.operator)
        before = folded.get(name)
        folded[name] = NamedOperator(name, step.text, 1 + (before.times if before else 0), has_state)
    return list(folded.values())


def _has_state(operator: Operator) -> bool:
    return isinstance(operator, StatefulOperator) and is_stateful(operator)


def name_operator(operator: Operator) -> str:
    """Return the name of one operator."""
    match operator:
        case Read():
            return f"read {operator.source or operator.format or 'literal rows'}"
        case WatermarkOperator():
            return f"watermark {format_duration(operator.delay)}"
        case Aggregate():
            keys = (
                join_words(state_retention.name_keys(operator.keys, operator.window)) if operator.keys else ""
            )
            return f"aggregate by {keys}" if keys else "aggregate all rows"
        case Deduplicate():
            suffix = " within watermark" if operator.is_within_watermark else ""
            return f"deduplicate by {join_words(state_retention.name_keys(operator.keys))}{suffix}"
        case Join():
            sides = (
                "stream-stream"
                if operator.is_stream_stream
                else "stream-static"
                if operator.is_streaming
                else "static"
            )
            return f"{operator.how.replace('_', ' ')} {sides} join"
        case StatefulFunction():
            return f"stateful function {operator.function or ''}".strip()
        case BatchFunction():
            return f"batch function {operator.function or ''}".strip()
        case Limit():
            return "limit" if operator.rows is None else f"limit {operator.rows}"
    if operator.node == "Union":
        return f"union of {count_union_inputs(operator)}"
    return _NODES.get(operator.node, operator.node)
