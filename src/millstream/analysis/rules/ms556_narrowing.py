"""A number from a source is cast to a smaller type, so that the query fails at the first that is too large."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.analysis.query.throwing_expressions import find_throwing
from millstream.analysis.rule_context import Code, Facts
from millstream.analysis.sql_edits import replace_in_marked_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
# The digits of the largest number of each type.
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report casts of a source's larger number to INT and smaller, without a condition that checks it."""
    for candidate in find_throwing(query, facts):
        cast = candidate.expression
        if cast.function != "cast" or cast.type not in _DIGITS or cast.type == "bigint" or not cast.inputs:
            continue
        number = cast.inputs[0].column
        if (
            number is None
            or cast.settings.get("evalMode", "ANSI") != "ANSI"
            or not candidate.is_unchecked(number)
        ):
            continue
        if _count_digits(number.type) <= _DIGITS[cast.type]:
            continue
        yield CODE.warning(
            f"{candidate.owner} casts '{number.name}', a {number.type} from a source, to "
            f"{cast.type.upper()}, and fails the "
            "query at the first number that does not fit",
            cast.span or candidate.operator.span,
            why="the batch with this row fails again after each restart, so no later row is ever read",
            fix="keep the wider type, or use try_cast, which returns NULL there",
            edit=replace_in_marked_text(facts, cast.span, "cast(", "try_cast(", safe=False),
            query=query.name,
        )


def _count_digits(number_type: str) -> int:
    """Return the digits that a number needs as an integer; 0 for another type.

    A decimal counts one more than it has: three digits are at most 999, and a TINYINT is at most 127.
    """
    if number_type in ("float", "double"):
        return 309
    decimal = _DECIMAL.fullmatch(number_type)
    return int(decimal[1]) - int(decimal[2]) + 1 if decimal else _DIGITS.get(number_type, 0)
