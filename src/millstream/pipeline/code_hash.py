"""Hash a Python function by its code and the code that it calls, so that formatting and comments do not count."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_PACKAGE = "__init__.py"
# The name under which the statement `from module import *` is found.
_EVERYTHING = "*"
# Conditions that are false in a module that is imported.
_NOT_IMPORTED = ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'")
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def hash_function(reference: str | Callable[..., object], folder: Path) -> str:
    """Return a hash of a function, or of that called `module:name`, with the definitions of the project that it uses.

    Definitions in the same file and in files of `folder` that it imports are followed. A function without a readable
    source has the hash of its name; one that another function defines has that of its own source.
    """
    if isinstance(reference, str):
        module, _, name = reference.partition(":")
        parts = sorted(_Project(folder).collect(module, name))
    else:
        parts = [_dump_callable(reference), *sorted(_collect_used(reference, folder))]
    return hashlib.sha256("\n".join(parts or [str(reference)]).encode()).hexdigest()[:16]


def _collect_used(function: Callable[..., object], folder: Path) -> Iterator[str]:
    """Yield the definitions of a project that a function of one of its files uses."""
    name = getattr(function, "__qualname__", "<locals>")
    try:
        file = Path(inspect.getsourcefile(inspect.unwrap(function)) or "").resolve()
    except TypeError:
        return
    if "<locals>" in name or not file.is_relative_to(folder.resolve()):
        return
    parts = file.relative_to(folder.resolve()).with_suffix("").parts
    module = ".".join(parts[:-1] if file.name == _PACKAGE else parts)
    yield from _Project(folder).collect_used(module, name.partition(".")[0])


class _Project:
    """The Python files of a project's folder, parsed when they are first used."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._modules: dict[str, dict[str, list[ast.stmt]]] = {}
        self._seen: set[tuple[str, str]] = set()

    def collect(self, module: str, name: str) -> Iterator[str]:
        """Yield the code of a definition and of all definitions of the project that it uses, each once."""
        if (module, name) in self._seen:
            return
        self._seen.add((module, name))
        definitions = self._definitions(module)
        if name not in definitions:
            for statement in definitions.get(_EVERYTHING, ()):
                if isinstance(statement, ast.ImportFrom):
                    yield from self.collect(self._resolve(module, statement), name)
        for statement in definitions.get(name, ()):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                yield from self._collect_import(module, statement, name)
                continue
            yield f"{module}.{name} = {_dump(statement)}"
            yield from self._collect_names(module, ast.walk(statement))

    def collect_used(self, module: str, name: str) -> Iterator[str]:
        """Yield the code of the definitions that a definition uses, without its own.

        Its decorators are left out, because one of them is a method of the pipeline.
        """
        self._seen.add((module, name))
        for statement in self._definitions(module).get(name, ()):
            decorators = getattr(statement, "decorator_list", [])
            others = [node for node in ast.iter_child_nodes(statement) if node not in decorators]
            yield from self._collect_names(module, (part for node in others for part in ast.walk(node)))

    def _collect_names(self, module: str, nodes: Iterable[ast.AST]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.Name):
                yield from self.collect(module, node.id)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                yield from self._collect_import(module, node)

    def _collect_import(
        self, module: str, statement: ast.Import | ast.ImportFrom, name: str | None = None
    ) -> Iterator[str]:
        """Yield the code that an import in a module brings, or only the code behind one of its names."""
        for alias in statement.names:
            if name not in (None, alias.asname or alias.name.partition(".")[0]):
                continue
            if isinstance(statement, ast.Import):
                yield from self._collect_all(alias.name)
                continue
            source = self._resolve(module, statement)
            if alias.name == _EVERYTHING:
                yield from self._collect_all(source)
                continue
            yield from self.collect(source, alias.name)
            if alias.name not in self._definitions(source):
                # A module of a package.
                yield from self._collect_all(f"{source}.{alias.name}".lstrip("."))

    def _resolve(self, module: str, statement: ast.ImportFrom) -> str:
        """Return the module from which a module imports. Leading dots mean the package of the module or one above."""
        if not statement.level:
            return statement.module or ""
        is_package = self._file(module).name == _PACKAGE
        parents = module.split(".")
        parents = parents[: len(parents) - statement.level + is_package]
        return ".".join([*parents, statement.module or ""]).strip(".")

    def _collect_all(self, module: str) -> Iterator[str]:
        """Yield all definitions of a module, because it is used by its name."""
        for name in list(self._definitions(module)):
            yield from self.collect(module, name)

    def _definitions(self, module: str) -> dict[str, list[ast.stmt]]:
        """Return the statements of a module of the project by the names that they define.

        Several may define one name, such as `import lib.a` and `import lib.b`.
        """
        if module not in self._modules:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", SyntaxWarning)
                    tree = ast.parse(self._file(module).read_text(encoding="utf-8-sig"))
            except (OSError, ValueError, SyntaxError):
                tree = ast.Module(body=[], type_ignores=[])
            definitions: dict[str, list[ast.stmt]] = {}
            for name, statement in _list_definitions(tree.body):
                definitions.setdefault(name, []).append(statement)
            self._modules[module] = definitions
        return self._modules[module]

    def _file(self, module: str) -> Path:
        """Return the file of a module of the project, or of a package."""
        path = module.replace(".", "/")
        package = self._folder / path / _PACKAGE
        return package if package.is_file() else self._folder / f"{path}.py"


def _list_definitions(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the names that statements define, each with its statement, also in all parts of `try`, `if` and `with`.

    A name in an `if` also has its condition. Statements that do not run in an imported module are left out.
    """
    for node in body:
        yield from ((name, node) for name in _defined_names(node))
        match node:
            case ast.If(test=test):
                inner = [*([] if ast.unparse(test) in _NOT_IMPORTED else node.body), *node.orelse]
                for name, statement in _list_definitions(inner):
                    yield from ((name, statement), (name, ast.Expr(test)))
            case ast.Try() | ast.TryStar():
                handled = [statement for handler in node.handlers for statement in handler.body]
                yield from _list_definitions([*node.body, *handled, *node.orelse, *node.finalbody])
            case ast.With():
                for item in node.items:
                    if item.optional_vars is not None:
                        value = ast.Expr(item.context_expr)
                        yield from ((name, value) for name in _target_names(item.optional_vars))
                yield from _list_definitions(node.body)


def _defined_names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            yield from _target_names(target)
    elif isinstance(node, ast.Import):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)


def _target_names(target: ast.expr) -> Iterator[str]:
    return (child.id for child in ast.walk(target) if isinstance(child, ast.Name))


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
