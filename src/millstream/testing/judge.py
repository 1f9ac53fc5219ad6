"""What of a step is not as it was expected to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from millstream.testing.alike import alike
from millstream.testing.case import Difference
from millstream.testing.moments import written
from millstream.testing.pairing import pair
from millstream.testing.sides import sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.testing.case import Case, Expected, Played, Row
    from millstream.testing.pairing import Paired

Same = Callable[[str, Any, Any], bool]
"""Are the wanted and the got value of a column the same?"""


def differences(expected: Expected, played: Played, case: Case) -> tuple[Difference, ...]:
    """Each thing that is not as expected; nothing when all is.

    After an error that nobody expected only that is told: the rest follows from it.
    """
    found: list[Difference] = []
    if played.error is not None and expected.error is None:
        return (Difference("error", ("none",), tuple(played.error.splitlines()) or ("",)),)
    if expected.error is not None and expected.error not in (played.error or ""):
        got = tuple(played.error.splitlines()) if played.error else ("none",)
        found.append(Difference("error", (f"one that says '{expected.error}'",), got))
    for name, rows in expected.rows.items():
        found += _rows(_called(name, case), rows, played.rows.get(name, ()), by_value(case.tolerance))
    if expected.watermark is not None and played.watermark != expected.watermark:
        got = (written(played.watermark),) if played.watermark else ("none",)
        found.append(Difference("watermark", (written(expected.watermark),), got))
    if expected.dropped is not None and expected.dropped != played.dropped:
        found.append(Difference("rows dropped as too late", (str(expected.dropped),), (str(played.dropped),)))
    found += _state(expected, played)
    if isinstance(expected.letters, int):
        if expected.letters != len(played.letters):
            found += _rows("dead letters", [{}] * expected.letters, played.letters, by_value(0))
    elif expected.letters is not None:
        found += _rows("dead letters", expected.letters, played.letters, by_letter)
    return tuple(found)


def _called(name: str, case: Case) -> str:
    """Rows by what gives them."""
    if not name:
        return f"rows of query '{case.query}'"
    if name in case.pipeline.views:
        return f"rows of view '{name}'"
    return f"rows of source '{name}'" if name in case.pipeline.sources else f"rows of sink '{name}'"


def _state(expected: Expected, played: Played) -> list[Difference]:
    """Rows in state, in all or by operator."""
    if expected.state is None:
        return []
    if isinstance(expected.state, int):
        total = sum(played.state.values())
        if total == expected.state:
            return []
        by = [f"  {name}: {many}" for name, many in played.state.items()] if len(played.state) > 1 else []
        return [Difference("rows in state", (str(expected.state),), (str(total), *by))]
    if all(played.state.get(name) == many for name, many in expected.state.items()):
        return []
    wanted = tuple(f"{name}: {many}" for name, many in expected.state.items())
    got = [
        f"{name}: {played.state[name]}" if name in played.state else f"{name}: no such operator"
        for name in expected.state
    ]
    got += [f"{name}: {many}" for name, many in played.state.items() if name not in expected.state]
    return [Difference("rows in state", wanted, tuple(got))]


def _rows(what: str, wanted: Sequence[Row], got: Sequence[Row], same: Same) -> list[Difference]:
    """The difference between rows in any order, or nothing."""
    found = paired(wanted, got, same)
    return [] if found.whole else [sides(what, wanted, got, found, same)]


def paired(wanted: Sequence[Row], got: Sequence[Row], same: Same) -> Paired:
    """Wanted rows paired with rows that came, by the columns that the wanted ones name."""
    small = [{name.lower(): value for name, value in row.items()} for row in got]

    def cost(one: Row, other: Row) -> int:
        return sum(
            name.lower() not in other or not same(name, value, other[name.lower()])
            for name, value in one.items()
        )

    return pair(wanted, small, cost)


def by_value(tolerance: float) -> Same:
    """Values compared as they are, whatever their column."""
    return lambda _, wanted, got: alike(wanted, got, tolerance)


def by_letter(name: str, wanted: Any, got: Any) -> bool:
    """A reason may be told in part: the whole is Spark's sentence."""
    if name.lower() == "reason" and isinstance(wanted, str):
        return wanted in str(got)
    return alike(wanted, got, 0)
