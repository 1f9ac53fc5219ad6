"""Messages that a query decodes itself, without asking which of them could be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.exposed import exposed, leaves
from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Operator, PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


_CHECKS = frozenset({"is_not_null", "is_null", "coalesce", "nvl", "try_parse_json", "parse_json"})


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """`from_json` and `from_csv` of a source's own column, in a query that nowhere asks whether a value is there."""
    if any(_looks(operator) for operator in query.walk()):
        return
    for one in exposed(query, facts):
        call = one.expression
        if call.function not in ("from_json", "from_csv") or "_corrupt_record" in call.type:
            continue
        column = next((leaf for leaf in leaves(call) if leaf.origins), None)
        if column is None:
            continue
        strict = "FAILFAST" in f"{call.text} {call.settings}".upper()
        what = (
            "and ends at the first message that cannot be read"
            if strict
            else "and a message that cannot be read becomes a row of NULLs"
        )
        yield CODE.warning(
            f"{one.owner} decodes '{column.name}' by {call.function}, {what}",
            call.span or one.operator.span,
            why=_CRASHES if strict else _LOSES,
            fix=_FIX
            if facts
            else "keep a column _corrupt_record in the schema, and leave out or keep apart its rows",
            query=query.name,
        )


_CRASHES = "the batch with that message fails at each attempt, and no later message is ever read"
_LOSES = "Spark neither fails nor counts it: what was sent is lost, and NULLs go into the sink"
_FIX = "declare format and schema on the source: on_malformed then says what becomes of such a message"


def _looks(operator: Operator) -> bool:
    """Does the user ask somewhere whether a value is there?"""
    return any(
        one.function in _CHECKS and (operator.view is not None or one.span is not None)
        for expression in operator.expressions
        for one in expression.walk()
    )
