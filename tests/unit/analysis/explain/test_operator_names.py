"""Operators by the names that Spark and the field have for them."""

from __future__ import annotations

from millstream.analysis.explain.operator_names import name_operators
from millstream.analysis.explain.plan_steps import PlanStep
from millstream.analysis.query.plan_model import Deduplicate, Operator
from unit.analysis.plans import ID, marked, read, windowed


def describe_operators(*operators: Operator) -> list[tuple[str, int, bool]]:
    steps = [PlanStep("", None, operator) for operator in operators]
    return [(one.name, one.times, one.has_state) for one in name_operators(steps)]


def deduplicated() -> Deduplicate:
    return Deduplicate(
        1, "Deduplicate", "", (marked(),), (ID,), is_streaming=True, keys=(ID,), is_within_watermark=True
    )


def test_branches_of_a_union_are_named_once_with_their_number() -> None:
    union = Operator(1, "Union", "", (marked("clicks"), marked("carts")), (ID,), is_streaming=True)

    assert describe_operators(
        read("clicks"), marked(), deduplicated(), read("carts"), marked(), deduplicated(), union, windowed()
    ) == [
        ("read clicks", 1, False),
        ("read carts", 1, False),
        ("watermark 5 minutes", 2, False),
        ("deduplicate by 'id' within watermark", 2, True),
        ("union of 2", 1, False),
        ("aggregate by window of 10 minutes over 'ts'", 1, True),
    ]
