"""Names that a function assigns only after it has read them: the read raises an UnboundLocalError."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CATCHING = frozenset({"UnboundLocalError", "NameError"})


def find_unbound_name(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.Name | None:
    """Return the first read of a local name that no statement of the function can have assigned before."""
    nodes = list(_walk_scope(function.body))
    if any(isinstance(node, ast.Name) and node.id in _CATCHING for node in nodes):
        return None
    arguments = function.args
    parameters = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    others = {argument.arg for argument in parameters if argument}
    others |= {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    bound = {
        name
        for node in nodes
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
        for name in _list_targets(node)
    }
    # A name that something else binds too is left out: a loop, an import, an `except` clause.
    reader = _Reader(bound - others - {name for node in nodes for name in _bind_otherwise(node)})
    for statement in function.body:
        reader.visit(statement)
    return reader.unbound


class _Reader(ast.NodeVisitor):
    """Visits a function in the order in which Python runs it, and remembers the first name read too early."""

    def __init__(self, local: Iterable[str]) -> None:
        self.waiting = {*local}
        """Local names that no statement has assigned yet."""
        self.unbound: ast.Name | None = None

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, _SCOPES):
            return
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            # In its second round, a loop reads what the first has assigned.
            self.waiting -= {name for part in ast.walk(node) for name in _list_targets(part)}
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            if node.value is not None:
                self.visit(node.value)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(node, ast.AugAssign) and isinstance(target, ast.Name):
                    self._read(target)
                if not isinstance(target, ast.Name):
                    self.visit(target)
            self.waiting -= _list_targets(node)
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self._read(node)
        if isinstance(node, _COMPREHENSIONS):
            own = _list_stored(node)
            before, self.waiting = self.waiting, self.waiting - own
            self.generic_visit(node)
            self.waiting = before & (self.waiting | own)
            return
        self.generic_visit(node)

    def _read(self, node: ast.Name) -> None:
        if self.unbound is None and node.id in self.waiting:
            self.unbound = node


def _walk_scope(body: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Yield the nodes of a function's own scope."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            waiting += ast.iter_child_nodes(node)


def _list_targets(node: ast.AST) -> set[str]:
    """Return the names that an assignment binds."""
    if isinstance(node, ast.Assign):
        targets: list[ast.expr] = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign) and (
        node.value is not None or isinstance(node, ast.AugAssign)
    ):
        targets = [node.target]
    else:
        return set()
    return {name for target in targets for name in _list_stored(target)}


def _list_stored(node: ast.AST) -> set[str]:
    """Return the names that are bound inside a node."""
    return {
        part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }


def _bind_otherwise(node: ast.AST) -> set[str]:
    """Return the names that something other than an assignment binds or deletes."""
    match node:
        case ast.For(target=target) | ast.AsyncFor(target=target) | ast.NamedExpr(target=target):
            return _list_stored(target)
        case ast.withitem(optional_vars=ast.AST() as target):
            return _list_stored(target)
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(alias.asname or alias.name).partition(".")[0] for alias in names}
        case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
            return {name}
        case ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
            return {name}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Name(id=name, ctx=ast.Del()):
            return {name}
    return set()
