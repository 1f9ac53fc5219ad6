"""The tables of a SQL text whose rows are grouped, as its tree says without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Iterator

_WINDOWS = frozenset({"window", "session_window"})


def grouped(tree: Any, times: frozenset[str] | None = None) -> set[int]:
    """Where the names of tables start whose rows are grouped: by GROUP BY, DISTINCT or an aggregate over all.

    With `times`, names of columns of time in lower case, only where the rows are grouped by time.
    """
    if tree is None:
        return set()
    bodies = {cte.alias.lower(): cte.this for cte in tree.find_all(exp.CTE)}
    found: set[int] = set()
    for select in tree.find_all(exp.Select):
        if _aggregates(select) and (times is None or _by_time(select, times)):
            found.update(_starts(_from(select), bodies, set()))
    return found


def _aggregates(select: Any) -> bool:
    if select.args.get("group") or select.args.get("distinct"):
        return True
    return any(
        call.find_ancestor(exp.Window, exp.Select) is select
        for column in select.expressions
        for call in column.find_all(exp.AggFunc)
    )


def _by_time(select: Any, times: frozenset[str]) -> bool:
    """Does a window, or a column of time, stand among what is grouped by?"""
    group = select.args.get("group")
    keys = (
        list(group.expressions) if group else list(select.expressions) if select.args.get("distinct") else []
    )
    for key in keys:
        ordinal = key.this if isinstance(key, exp.Literal) and not key.is_string else ""
        number = int(ordinal) if str(ordinal).isdigit() else 0
        here = select.expressions[number - 1] if 0 < number <= len(select.expressions) else key
        for one in here.find_all(exp.Anonymous, exp.Column):
            name = (one.this if isinstance(one, exp.Anonymous) else one.name).lower()
            # A window over the clock has no column: a watermark would not help it.
            if one.find_ancestor(exp.Cast, exp.TsOrDsToDate, exp.Date, exp.Select) not in (
                select,
                None,
            ) and _day(one):
                continue
            windowed = name in _WINDOWS and one.find(exp.Column) is not None
            if windowed if isinstance(one, exp.Anonymous) else name in times:
                return True
    return False


def _day(column: Any) -> bool:
    """Is a column made into a whole day?"""
    outer = column.find_ancestor(exp.Cast, exp.TsOrDsToDate, exp.Date)
    return not isinstance(outer, exp.Cast) or outer.to.is_type("date")


def _from(select: Any) -> Iterator[Any]:
    for part in (select.args.get("from_") or select.args.get("from"), *(select.args.get("joins") or ())):
        if part is not None:
            yield from part.find_all(exp.Table)


def _starts(tables: Iterator[Any], bodies: dict[str, Any], seen: set[str]) -> Iterator[int]:
    """The tables themselves, and those that a common table expression of that name reads."""
    for table in tables:
        name = table.this
        if not isinstance(name, exp.Identifier):
            continue
        word = name.name.lower()
        if word in bodies and not table.args.get("db"):
            if word not in seen:
                yield from _starts(bodies[word].find_all(exp.Table), bodies, seen | {word})
        elif "start" in name.meta:
            yield int(name.meta["start"])
