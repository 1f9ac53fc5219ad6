"""Find the tables of a SQL text whose rows are grouped, from its syntax tree, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Iterator

_WINDOWS = frozenset({"window", "session_window"})
_TIMESTAMPS = ("timestamp", "timestamptz", "timestampltz", "timestampntz")


def find_grouped_tables(tree: Any, times: frozenset[str] | None = None) -> set[int]:
    """Return the start offsets of tables whose rows are grouped by GROUP BY, DISTINCT or a global aggregate.

    With `times`, the names of time columns in lower case, return only tables grouped by time.
    """
    if tree is None:
        return set()
    bodies = {cte.alias.lower(): cte.this for cte in tree.find_all(exp.CTE)}
    starts: set[int] = set()
    for select in tree.find_all(exp.Select):
        if _is_aggregation(select) and (times is None or _groups_by_time(select, times)):
            starts.update(_find_starts(_list_tables(select), bodies, set()))
    return starts


def _is_aggregation(select: Any) -> bool:
    if select.args.get("group") or select.args.get("distinct"):
        return True
    return any(
        call.find_ancestor(exp.Window, exp.Select) is select
        for column in select.expressions
        for call in column.find_all(exp.AggFunc)
    )


def _groups_by_time(select: Any, times: frozenset[str]) -> bool:
    """Return whether a window or a time column is among the group expressions."""
    group = select.args.get("group")
    keys = (
        list(group.expressions) if group else list(select.expressions) if select.args.get("distinct") else []
    )
    for key in keys:
        ordinal = key.this if isinstance(key, exp.Literal) and not key.is_string else ""
        number = int(ordinal) if str(ordinal).isdigit() else 0
        expression = select.expressions[number - 1] if 0 < number <= len(select.expressions) else key
        if _is_time(expression, times):
            return True
    return False


def _is_time(expression: Any, times: frozenset[str]) -> bool:
    """Return whether an expression is a window, or a time column that is at most truncated or converted.

    Other functions of a time, such as its hour, may have few values: only a plan shows their types.
    """
    match expression:
        case exp.Column():
            return expression.name.lower() in times
        case exp.Anonymous():
            # A window over the clock has no column, so a watermark would have no effect.
            return str(expression.this).lower() in _WINDOWS and expression.find(exp.Column) is not None
        case exp.Cast() | exp.TryCast() if not expression.to.is_type(*_TIMESTAMPS):
            return False
        case exp.Alias() | exp.Paren() | exp.Dot() | exp.Cast() | exp.TryCast() | exp.TimestampTrunc():
            return _is_time(expression.this, times)
        case _:
            return False


def _list_tables(select: Any) -> Iterator[Any]:
    for part in (select.args.get("from_") or select.args.get("from"), *(select.args.get("joins") or ())):
        if part is not None:
            yield from part.find_all(exp.Table)


def _find_starts(tables: Iterator[Any], bodies: dict[str, Any], visited: set[str]) -> Iterator[int]:
    """Yield the start offsets of tables, following common table expressions to the tables that they read."""
    for table in tables:
        name = table.this
        if not isinstance(name, exp.Identifier):
            continue
        table_name = name.name.lower()
        if table_name in bodies and not table.args.get("db"):
            if table_name not in visited:
                yield from _find_starts(
                    bodies[table_name].find_all(exp.Table), bodies, visited | {table_name}
                )
        elif "start" in name.meta:
            yield int(name.meta["start"])
