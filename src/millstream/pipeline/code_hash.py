"""Hash a Python function by its code and the code that it calls, so that formatting and comments do not count."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def hash_function(reference: str | Callable[..., object], folder: Path) -> str:
    """Return a hash of the function `module:name` with the definitions of the project that it uses.

    Definitions in the same file and in files of `folder` that it imports are followed. A function without a readable
    source has the hash of its name.
    """
    if isinstance(reference, str):
        module, _, name = reference.partition(":")
        parts = sorted(_Project(folder).collect(module, name))
    else:
        parts = [_dump_callable(reference)]
    return hashlib.sha256("\n".join(parts or [str(reference)]).encode()).hexdigest()[:16]


class _Project:
    """The Python files of a project's folder, parsed when they are first used."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._modules: dict[str, dict[str, ast.stmt]] = {}
        self._seen: set[tuple[str, str]] = set()

    def collect(self, module: str, name: str) -> Iterator[str]:
        """Yield the code of a definition and of all definitions of the project that it uses, each once."""
        if (module, name) in self._seen:
            return
        self._seen.add((module, name))
        definitions = self._definitions(module)
        statement = definitions.get(name)
        if statement is None:
            return
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    yield from self.collect(statement.module or "", alias.name)
            return
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if (alias.asname or alias.name.partition(".")[0]) == name:
                    yield from self._collect_all(alias.name)
            return
        yield f"{module}.{name} = {_dump(statement)}"
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                yield from self.collect(module, node.id)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    yield from self.collect(node.module or "", alias.name)

    def _collect_all(self, module: str) -> Iterator[str]:
        """Yield all definitions of a module, because it is used by its name."""
        for name in list(self._definitions(module)):
            yield from self.collect(module, name)

    def _definitions(self, module: str) -> dict[str, ast.stmt]:
        """Return the statements of a module of the project by the names that they define."""
        if module not in self._modules:
            file = self._folder / (module.replace(".", "/") + ".py")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", SyntaxWarning)
                    tree = ast.parse(file.read_text(encoding="utf-8"))
            except (OSError, ValueError, SyntaxError):
                tree = ast.Module(body=[], type_ignores=[])
            self._modules[module] = {name: node for node in tree.body for name in _defined_names(node)}
        return self._modules[module]


def _defined_names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            yield from (child.id for child in ast.walk(target) if isinstance(child, ast.Name))
    elif isinstance(node, ast.Import):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)


def _dump(tree: ast.AST) -> str:
    """Return code without positions, comments and docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and node.body and _is_docstring(node.body[0]) and len(node.body) > 1:
            del node.body[0]
    return ast.dump(tree)


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _dump_callable(function: Callable[..., object]) -> str:
    try:
        return _dump(ast.parse(textwrap.dedent(inspect.getsource(function))))
    except (OSError, TypeError, SyntaxError):
        return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"
