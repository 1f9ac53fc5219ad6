"""A number from outside that is cast to a type with less room, and ends the query where it does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.amend import replaced
from millstream.analysis.exposed import exposed
from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


_ROOM = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_WIDE = ("bigint", "float", "double", "decimal")


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Casts to INT and smaller of a source's own wider number, under no condition that looks at it."""
    for one in exposed(query, facts):
        cast = one.expression
        if cast.function != "cast" or cast.type not in _ROOM or cast.type == "bigint" or not cast.inputs:
            continue
        number = cast.inputs[0].column
        if number is None or cast.settings.get("evalMode", "ANSI") != "ANSI" or not one.unchecked(number):
            continue
        if not number.type.startswith(_WIDE):
            continue
        yield CODE.warning(
            f"{one.owner} casts '{number.name}', a {number.type} from outside, to {cast.type.upper()}, and ends the "
            "query at the first number that does not fit",
            cast.span or one.operator.span,
            why="the batch with that row fails at each attempt, and no later row is ever read",
            fix="keep the wider type, or use try_cast, which gives NULL there",
            edit=replaced(facts, cast.span, "cast(", "try_cast(", safe=False),
            query=query.name,
        )
