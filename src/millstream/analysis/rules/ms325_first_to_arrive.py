"""`first` and `last` of a group: of the rows as they happen to arrive, and not by their time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.amend import marked, replaced
from millstream.analysis.dataflow import Aggregate
from millstream.analysis.facts import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Expression, PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Edit, Finding

CODE = Code.of(__name__)

_FIRST = {"first": "min_by", "first_value": "min_by", "last": "max_by", "last_value": "max_by"}


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """`any_value` says that any will do, `min_by` and `max_by` name an order: both are right."""
    for one in query.of(Aggregate):
        for call in one.functions:
            by = _FIRST.get(call.function)
            if by is None:
                continue
            inside = call.inputs[0].text if call.inputs else "…"
            yield CODE.warning(
                f"{eventtime.who(query, one)} takes the {call.function.partition('_')[0]} '{inside}' to arrive",
                call.span or eventtime.place(query, one),
                label="by arrival",
                why="rows arrive in no order of time, and not the same way twice: another run gives another answer",
                fix=f"write '{by}({inside}, …)' with the time that orders them, or 'any_value({inside})' where all "
                "are the same",
                edit=_edit(facts, call),
                query=query.name,
            )


def _edit(facts: Facts | None, call: Expression) -> Edit | None:
    """`any_value` gives what `first` gave; which order was meant instead only the user knows."""
    if not call.function.startswith("first") or not marked(facts, call.span).lower().startswith("first"):
        return None
    word = marked(facts, call.span).partition("(")[0].strip()
    return replaced(facts, call.span, f"{word}(", "any_value(", safe=False)
