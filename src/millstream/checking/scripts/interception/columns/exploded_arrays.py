"""Find the array of which a column that a script names is an element."""

from __future__ import annotations

import ast
import re

from millstream.analysis.python.parsing import parse_python
from millstream.checking.scripts.interception import call_sites

_EXPLODING = frozenset(
    {"explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"}
)
# A lateral view names the table of the elements too.
_IN_SQL = re.compile(r"\bexplode(?:_outer)?\s*\(\s*([\w.]+)\s*\)\s+(?:\w+\s+)??AS\s+(\w+)", re.IGNORECASE)


def find_exploded(name: str) -> set[str]:
    """Return the arrays whose elements get a name, in lower case, in the file of the user's current statement.

    These are `explode(…).alias(name)`, `withColumn(name, explode(…))`, and `explode(…) AS name` in SQL. For an array
    in a struct, its column is returned.
    """
    file = call_sites.current_file()
    if file is None:
        return set()
    try:
        content = call_sites.read_python(file)
    except OSError:
        return set()
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    arrays = {array for array, element in _IN_SQL.findall(text) if element.lower() == name}
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError):
        tree = ast.Module([], [])
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    arrays |= {array for call in calls if (array := _find_array(call, name)) is not None}
    return {array.partition(".")[0] for array in arrays}


def _find_array(call: ast.Call, name: str) -> str | None:
    """Return the array whose elements a call gives a name."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Call() as inner, attr="alias"), args=[ast.Constant(value=alias)]
        ):
            pass
        case ast.Call(
            func=ast.Attribute(attr="withColumn"), args=[ast.Constant(value=alias), ast.Call() as inner]
        ):
            pass
        case _:
            return None
    function = inner.func
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    is_named = isinstance(alias, str) and alias.lower() == name and called in _EXPLODING
    return _read_name(inner.args[0]) if is_named and inner.args else None


def _read_name(column: ast.expr) -> str | None:
    """Return the name of a column: `"a"`, `col("a")`, `frame.a` or `frame["a"]`."""
    match column:
        case ast.Constant(value=str(name)):
            return name
        case ast.Call(args=[ast.Constant(value=str(name))]):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Attribute(attr=name):
            return name
        case _:
            return None
