"""Recognise a foreachBatch function that only merges its batch into a Delta table, by the usual shapes."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checking.scripts.migration.script_statements import list_read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_EQUAL = re.compile(r"\s*(\w+)\.(\w+)\s*=\s*(\w+)\.(\w+)\s*")
_GUARD = re.compile(r"\s*(\w+)\.(\w+)\s*(>=?|<=?)\s*(\w+)\.(\w+)\s*")
_NOT_EQUAL = re.compile(
    r"\s*(?:NOT\s*\(\s*(.+?)\s*=\s*(.+?)\s*\)|(.+?)\s*(?:!=|<>)\s*(.+?))\s*", re.IGNORECASE
)
_AND_OR = re.compile(r"\b(?:and|or)\b", re.IGNORECASE)
# Statements about the batch that change no table.
_HARMLESS = ("persist", "cache", "unpersist", "isEmpty")
# Calls that only return a value, by the last name, and the modules whose functions all do.
_PURE_CALLS = ("alias", "count", "forName", "forPath", "getLogger", "isEmpty", "len", "now", "str", "time")
_PURE_MODULES = ("F", "functions", "Window")


@dataclass(frozen=True)
class MergeFunction:
    """A merge by equal keys that updates and inserts all columns."""

    place: tuple[str, str]
    """`path` or `table`, and which."""
    keys: tuple[str, ...]
    sequence: str = ""
    """The column whose greatest value of each key is merged; "" if every row of the batch is."""
    deletes: str = ""
    """The SQL condition of a row that deletes; "" if none does."""
    is_guarded: bool = False
    """Whether a row that is older than that of the table changes nothing."""


class _Unknown(Exception):
    """The function has another shape."""


def recognise_merge(text: str, function: str) -> MergeFunction | None:
    """Return the merge of a function, given the code that defines it; None if it does anything else."""
    body = ast.parse(text).body
    nodes = [part for part in body if isinstance(part, ast.FunctionDef) and part.name == function]
    if not nodes or not nodes[0].args.args:
        return None
    constants = {
        target.id: part.value
        for part in body
        if isinstance(part, ast.Assign)
        for target in part.targets
        if isinstance(target, ast.Name)
    }
    try:
        return _read_function(nodes[0], constants)
    except (_Unknown, LookupError, ValueError):
        # The function has another shape, or one of its calls has other arguments.
        return None


def _read_function(node: ast.FunctionDef, constants: Mapping[str, ast.expr]) -> MergeFunction:
    batch = node.args.args[0].arg
    values = dict(constants)
    merge: ast.expr | None = None
    assigned: list[tuple[str, set[str], bool]] = []
    used: set[str] = set()
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if merge is None:
                assigned.append((name, list_read(value), _is_pure(value)))
                # Names inside the value are replaced.
                values[name] = _resolve(value, values)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="execute"))) if merge is None:
                used = list_read(statement)
                merge = _resolve(statement.value, values)
            case _ if not _is_harmless(statement, batch):
                raise _Unknown
    if merge is None:
        raise _Unknown
    for name, reads, is_pure in reversed(assigned):
        # A value that the merge uses is read as a part of it.
        if name not in used and not is_pure:
            raise _Unknown
        used = (used - {name}) | reads if name in used else used
    return _read_merge(_chain(merge), batch)


def _is_pure(expression: ast.expr) -> bool:
    """Return whether an expression calls only functions that are known to have no other effect than their value."""
    for part in ast.walk(expression):
        if not isinstance(part, ast.Call):
            continue
        name = part.func.attr if isinstance(part.func, ast.Attribute) else ast.unparse(part.func)
        if name not in _PURE_CALLS and ast.unparse(part.func).partition(".")[0] not in _PURE_MODULES:
            return False
    return True


def _is_harmless(statement: ast.stmt, batch: str) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Return(value=None):
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=printed)):
            return all(_is_pure(value) for value in printed)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method))):
            return name == batch and method in _HARMLESS
        case ast.If(test=test, body=[ast.Return(value=None)], orelse=[]):
            return ast.unparse(test) in (
                f"{batch}.isEmpty()",
                f"{batch}.rdd.isEmpty()",
                f"{batch}.count() == 0",
            )
        case _:
            return False


Call = tuple[str, list[ast.expr], dict[str, ast.expr]]


def _chain(expression: ast.expr) -> tuple[ast.expr, list[Call]]:
    """Return the beginning of a chain of calls, and its calls in their order."""
    calls: list[Call] = []
    while isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        named = {keyword.arg: keyword.value for keyword in expression.keywords if keyword.arg}
        calls.insert(0, (expression.func.attr, expression.args, named))
        expression = expression.func.value
    return expression, calls


def _read_merge(chain: tuple[ast.expr, list[Call]], batch: str) -> MergeFunction:
    start, calls = chain
    names = [name for name, _, _ in calls]
    if "merge" not in names:
        raise _Unknown
    at = names.index("merge")
    place, target = _read_target(start, calls[:at])
    _, arguments, named = calls[at]
    rows, condition = [*arguments, *(named[key] for key in ("source", "condition") if key in named)]
    begin, source_calls = _chain(rows)
    alias = ""
    if source_calls and source_calls[-1][0] == "alias":
        alias = _text(source_calls[-1][1][0])
        source_calls = source_calls[:-1]
    if not isinstance(begin, ast.Name) or begin.id != batch:
        raise _Unknown
    keys = _read_keys(_text(condition), target, alias)
    sequence = _read_latest(source_calls, keys) if source_calls else ""
    clauses = {name: (arguments, named) for name, arguments, named in calls[at + 1 :]}
    known = {"whenMatchedDelete", "whenMatchedUpdateAll", "whenNotMatchedInsertAll", "execute"}
    if len(clauses) < len(calls[at + 1 :]) or not {*clauses} <= known:
        raise _Unknown
    if not {"whenMatchedUpdateAll", "whenNotMatchedInsertAll"} <= {*clauses}:
        raise _Unknown
    deletes = _condition(clauses.get("whenMatchedDelete"))
    order = [*clauses]
    if deletes and order.index("whenMatchedDelete") > order.index("whenMatchedUpdateAll"):
        raise _Unknown
    if ("whenMatchedDelete" in clauses) != bool(deletes):
        raise _Unknown
    inserts = _condition(clauses["whenNotMatchedInsertAll"])
    if _negated(inserts) != deletes.replace(" ", ""):
        # A row that deletes is inserted if its key is not there, or another row is not inserted.
        raise _Unknown
    guard = _condition(clauses["whenMatchedUpdateAll"])
    if guard and not (sequence and _is_guard(guard, sequence, target, alias)):
        raise _Unknown
    return MergeFunction(place, keys, sequence, re.sub(rf"\b{alias}\.", "", deletes), bool(guard))


def _read_target(start: ast.expr, calls: Sequence[Call]) -> tuple[tuple[str, str], str]:
    """Return the table of a merge, and its alias."""
    if not isinstance(start, ast.Name) or start.id != "DeltaTable" or not calls:
        raise _Unknown
    name, arguments, _ = calls[0]
    place = {"forPath": "path", "forName": "table"}.get(name)
    if place is None or len(arguments) != 2:
        raise _Unknown
    alias = ""
    for method, values, _ in calls[1:]:
        if method != "alias":
            raise _Unknown
        alias = _text(values[0])
    return (place, _text(arguments[1])), alias


def _read_keys(condition: str, target: str, source: str) -> tuple[str, ...]:
    keys = []
    for part in re.split(r"(?i)\band\b", condition):
        match = _EQUAL.fullmatch(part)
        if match is None or match[2] != match[4] or {match[1], match[3]} != {target, source}:
            raise _Unknown
        keys.append(match[2])
    return tuple(keys)


def _read_latest(calls: Sequence[Call], keys: Sequence[str]) -> str:
    """Return the column by which the newest row of each key is taken."""
    match calls:
        case [("orderBy" | "sort", order, named), ("dropDuplicates" | "drop_duplicates", [subset], _)]:
            if sorted(_names(subset)) != sorted(keys):
                raise _Unknown
            return _descending(order, named)
        case [("withColumn", [number, window], _), ("where" | "filter", [first], _), ("drop", [dropped], _)]:
            name = _text(number)
            conditions = (f"{name} = 1", f"{name} == 1", f"F.col('{name}') == 1", f"col('{name}') == 1")
            shown = first.value if isinstance(first, ast.Constant) else ast.unparse(first)
            if shown not in conditions or _text(dropped) != name:
                raise _Unknown
            return _read_window(window, keys)
        case _:
            raise _Unknown


def _read_window(window: ast.expr, keys: Sequence[str]) -> str:
    _, calls = _chain(window)
    if (
        not calls
        or calls[-1][0] != "over"
        or not ast.unparse(window).partition(".over")[0].endswith("row_number()")
    ):
        raise _Unknown
    (specification,) = calls[-1][1]
    begin, parts = _chain(specification)
    match parts:
        case [("partitionBy", partition, _), ("orderBy", order, named)] if ast.unparse(begin) == "Window":
            columns = [name for column in partition for name in _names(column)]
            if sorted(columns) != sorted(keys):
                raise _Unknown
            return _descending(order, named)
        case _:
            raise _Unknown


def _descending(order: Sequence[ast.expr], named: Mapping[str, ast.expr]) -> str:
    if len(order) != 1:
        raise _Unknown
    text = ast.unparse(order[0])
    match = re.fullmatch(r"(?:\w+\.)?desc\('(\w+)'\)|(?:\w+\.)?col\('(\w+)'\)\.desc\(\)|'(\w+)'", text)
    if match is None:
        raise _Unknown
    is_falling = ast.unparse(named["ascending"]) == "False" if "ascending" in named else match[3] is None
    if not is_falling:
        raise _Unknown
    return match[1] or match[2] or match[3]


def _condition(clause: tuple[list[ast.expr], dict[str, ast.expr]] | None) -> str:
    """Return the SQL condition of a clause, "" for one without."""
    if clause is None:
        return ""
    values = [*clause[0], *(value for key, value in clause[1].items() if key == "condition")]
    return _text(values[0]) if values else ""


def _negated(condition: str) -> str:
    """Return the negation of a comparison for inequality, without spaces; "" for no condition."""
    if not condition:
        return ""
    match = _NOT_EQUAL.fullmatch(condition)
    if match is None or (match[3] and _AND_OR.search(condition)):
        raise _Unknown
    return f"{match[1] or match[3]}={match[2] or match[4]}".replace(" ", "")


def _is_guard(condition: str, sequence: str, target: str, source: str) -> bool:
    match = _GUARD.fullmatch(condition)
    if match is None or match[2] != sequence or match[5] != sequence:
        return False
    newer, older = (match[1], match[4]) if match[3].startswith(">") else (match[4], match[1])
    return (newer, older) == (source, target)


def _resolve(expression: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """Return an expression with the values of local names in place of the names."""

    class Names(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.AST:
            return values.get(name.id, name)

    return Names().visit(expression)  # type: ignore[no-any-return]


def _names(expression: ast.expr) -> list[str]:
    elements = expression.elts if isinstance(expression, ast.List | ast.Tuple) else [expression]
    return [_text(element) for element in elements]


def _text(expression: ast.expr) -> str:
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        return expression.value
    raise _Unknown
