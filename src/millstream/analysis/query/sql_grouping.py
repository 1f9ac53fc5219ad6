"""Find the tables of a SQL text whose rows are grouped, from its syntax tree, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Iterator

_WINDOWS = frozenset({"window", "session_window"})


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
        for node in expression.find_all(exp.Anonymous, exp.Column):
            name = (node.this if isinstance(node, exp.Anonymous) else node.name).lower()
            # A window over the clock has no column, so a watermark would have no effect.
            if node.find_ancestor(exp.Cast, exp.TsOrDsToDate, exp.Date, exp.Select) not in (
                select,
                None,
            ) and _is_whole_day(node):
                continue
            is_window = name in _WINDOWS and node.find(exp.Column) is not None
            if is_window if isinstance(node, exp.Anonymous) else name in times:
                return True
    return False


def _is_whole_day(column: Any) -> bool:
    """Return whether a column is converted to a whole day."""
    outer = column.find_ancestor(exp.Cast, exp.TsOrDsToDate, exp.Date)
    return not isinstance(outer, exp.Cast) or outer.to.is_type("date")


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
