"""`first` and `last` of a group follow the order of arrival, not of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Aggregate
from millstream.analysis.rule_context import Code
from millstream.analysis.sql_edits import read_marked_text, replace_in_marked_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Expression, PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Edit, Finding

CODE = Code.of(__name__)

_FIRST = {"first": "min_by", "first_value": "min_by", "last": "max_by", "last_value": "max_by"}


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report `first` and `last`. `any_value` is correct if any value will do, `min_by` and `max_by` name an order."""
    for aggregate in query.of(Aggregate):
        for call in aggregate.functions:
            replacement = _FIRST.get(call.function)
            if replacement is None:
                continue
            argument = call.inputs[0].text if call.inputs else "…"
            yield CODE.warning(
                f"{event_time.owner_label(query, aggregate)} takes the "
                f"{call.function.partition('_')[0]} '{argument}' to "
                "arrive",
                call.span or event_time.find_span(query, aggregate),
                label="by arrival",
                why="the order in which rows arrive at a task is not fixed, so another run may give another result",
                fix=f"write '{replacement}({argument}, …)' with the time that orders them, or "
                f"'any_value({argument})' if all values "
                "are the same",
                edit=_build_edit(facts, call),
                query=query.name,
            )


def _build_edit(facts: Facts | None, call: Expression) -> Edit | None:
    """Replace `first` with `any_value`, which returns the same; only the user knows which order was intended."""
    if not call.function.startswith("first") or not read_marked_text(facts, call.span).lower().startswith(
        "first"
    ):
        return None
    function = read_marked_text(facts, call.span).partition("(")[0].strip()
    return replace_in_marked_text(facts, call.span, f"{function}(", "any_value(", safe=False)
