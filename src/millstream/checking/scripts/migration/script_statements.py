"""What statements read, assign and change, by the syntax tree of a script."""

from __future__ import annotations

import ast
import copy
import importlib
from typing import TYPE_CHECKING

from millstream.analysis.python.undefined_names import list_global_names

if TYPE_CHECKING:
    from collections.abc import Iterator

# Methods by which lists, dictionaries, sets and `StructType` are changed.
_CHANGES = ("add", "append", "extend", "insert", "pop", "remove", "reverse", "setdefault", "sort", "update")
_OWN_SCOPES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


def list_assigned(statement: ast.AST) -> set[str]:
    """Return the names that a statement, or one inside it, assigns in its own scope."""
    names = set()
    for node in _walk_scope(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
    return names


def _walk_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those inside of it, without the variables of functions and comprehensions."""
    yield node
    if not isinstance(node, _OWN_SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _walk_scope(child)


def list_changed(statement: ast.AST) -> set[str]:
    """Return the names of lists, dictionaries and schemas that a statement, or one inside it, changes in place."""
    places: list[ast.expr] = []
    for node in ast.walk(statement):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=method, value=place))) if method in _CHANGES:
                places.append(place)
            case ast.Subscript(ctx=ast.Store() | ast.Del(), value=place):
                places.append(place)
    names = set()
    for place in places:
        root = place
        while isinstance(root, ast.Call | ast.Attribute | ast.Subscript):
            root = root.func if isinstance(root, ast.Call) else root.value
        names |= {root.id} if isinstance(root, ast.Name) else set()
    return names


def list_read(node: ast.AST) -> set[str]:
    """Return the names that code reads, also those of Python and those of its own functions."""
    return {
        part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }


def list_globals(definition: ast.stmt) -> set[str]:
    """Return the names of the module, or of Python, that a statement of the module and its functions use."""
    return list_global_names(ast.unparse(definition))


def is_assignment(statement: ast.stmt) -> bool:
    """Return whether a statement only gives names to values."""
    return isinstance(statement, ast.Assign) or (
        isinstance(statement, ast.AnnAssign) and statement.value is not None
    )


def is_constant(statement: ast.stmt) -> bool:
    """Return whether a statement assigns names in upper case only."""
    names = list_assigned(statement)
    return is_assignment(statement) and bool(names) and all(name.isupper() for name in names)


def with_own_session(definition: ast.stmt) -> ast.stmt:
    """Return a function that takes `spark` from its batch, because the script's own session is not in a project."""
    if not isinstance(definition, ast.FunctionDef) or not definition.args.args:
        return definition
    if "spark" not in list_read(definition) or "spark" in {node.arg for node in definition.args.args}:
        return definition
    function = copy.deepcopy(definition)
    function.body = [*ast.parse(f"spark = {function.args.args[0].arg}.sparkSession").body, *function.body]
    return function


def makes_session(statement: ast.AST) -> bool:
    """Return whether a statement gets the Spark session."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("getOrCreate", "active", "getActiveSession")
        for node in ast.walk(statement)
    )


def list_registered_views(statement: ast.AST) -> list[str]:
    """Return the names of temporary views that a statement registers."""
    return [
        str(node.args[0].value)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("createOrReplaceTempView", "createTempView", "registerTempTable")
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ]


def list_texts(node: ast.AST) -> list[str]:
    """Return the texts in code."""
    return [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]


def list_bound(node: ast.AST | None) -> frozenset[str]:
    """Return the parameters of a function, or the variables of a loop or a `with`."""
    match node:
        case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments):
            return frozenset(part.arg for part in ast.walk(arguments) if isinstance(part, ast.arg))
        case ast.For(target=target) | ast.AsyncFor(target=target):
            return frozenset(list_assigned(target))
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return frozenset(name for item in items for name in list_assigned(item))
    return frozenset()


def list_starred(tree: ast.Module) -> set[str] | None:
    """Return the names that a script imports with `*`; None if it has no such import, or one of another package."""
    modules = [
        node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    ]
    if not modules or not all(module.partition(".")[0] == "pyspark" for module in modules):
        return None
    try:
        spaces = [vars(importlib.import_module(module)) for module in modules]
    except ImportError:
        return None
    return {name for space in spaces for name in space.get("__all__", space)}
