"""Run a file without the statements that have no result in a check: a stand-in takes the place of each result."""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib.machinery
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.analysis.python.parsing import compile_python, parse_python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.recording import Doubt

# The name by which a changed file calls for a stand-in.
_FUNCTION = "__millstream_stand_in__"

# Methods of a frame that make a frame of its rows.
_DERIVING = frozenset(
    {"select", "selectExpr", "withColumn", "withColumns", "withColumnRenamed", "withColumnsRenamed"}
    | {"where", "filter", "drop", "dropna", "fillna", "distinct", "dropDuplicates", "alias", "toDF", "limit"}
    | {"orderBy", "cache", "persist", "repartition", "coalesce"}
)  # fmt: skip


class Role(StrEnum):
    """What the result of a statement is to the rest of a script."""

    VALUE = "value"
    QUERY = "query"
    TABLE = "table"
    """A table without a stream, made from rows of Python or pandas."""


Place = tuple[str, int, int]
"""A file, and the line and column of a statement."""


@dataclass
class SkippedStatements:
    """The statements that a run leaves out, each with the reason."""

    doubts: dict[Place, Doubt] = field(default_factory=dict)
    _dropped: set[Place] = field(default_factory=set)
    """Statements that failed again with a stand-in, and are left out as a whole."""

    def add(self, place: Place, doubt: Doubt) -> bool:
        """Leave out a statement from the next run on. False if it is left out as a whole already."""
        if place in self._dropped:
            return False
        if place in self.doubts:
            self._dropped.add(place)
        self.doubts.setdefault(place, doubt)
        return True

    def compile(self, text: bytes | str, file: str) -> CodeType:
        """Compile a file, with stand-ins for the results of the statements that are left out."""
        own = {place: place in self._dropped for place in self.doubts if place[0] == file}
        if not own:
            return compile_python(text, file)
        tree = _Skipper(file, own).visit(parse_python(text, file))
        return compile(ast.fix_missing_locations(tree), file, "exec")

    @contextlib.contextmanager
    def applied(self, patches: Patches, stand_in: Callable[[Doubt, Role], Any]) -> Iterator[None]:
        """Apply them to imported modules too. `stand_in` makes a result that has a role."""
        files = {place[0] for place in self.doubts}

        def code(original: Any, loader: Any, fullname: str) -> Any:
            path = str(loader.path)
            return (
                self.compile(Path(path).read_bytes(), path) if path in files else original(loader, fullname)
            )

        def compile_module(original: Any, loader: Any, data: bytes, path: str, **named: Any) -> Any:
            try:
                return original(loader, data, path, **named)
            except SyntaxError:
                return compile_python(data, path)

        patches.wrap(importlib.machinery.SourceFileLoader, "source_to_code", compile_module)
        if files:
            patches.wrap(importlib.machinery.SourceFileLoader, "get_code", code)
        vars(builtins)[_FUNCTION] = lambda *place, role: stand_in(self.doubts[place], Role(role))
        try:
            yield
        finally:
            del vars(builtins)[_FUNCTION]


class _Skipper(ast.NodeTransformer):
    """Replaces the value of statements, or the statements themselves if they are to be dropped."""

    def __init__(self, file: str, places: dict[Place, bool]) -> None:
        self._file = file
        self._places = places

    def visit(self, node: ast.AST) -> Any:
        """Replace a statement that is left out."""
        if isinstance(node, ast.stmt):
            place = (self._file, node.lineno, node.col_offset)
            if place in self._places:
                return self._replaced(node, place, dropped=self._places[place])
        return self.generic_visit(node)

    def _replaced(self, node: ast.stmt, place: Place, *, dropped: bool) -> ast.stmt:
        value = self._stand_in(node, place)
        if dropped and not isinstance(node, ast.Return):
            return ast.copy_location(ast.Pass(), node)
        match node:
            case ast.Assign() | ast.AnnAssign() | ast.Return():
                node.value = value
            case ast.AugAssign():
                return ast.copy_location(ast.Assign([node.target], value), node)
            case ast.Expr():
                node.value = value
            case ast.If() | ast.While():
                node.test = value
                self.generic_visit(node)
            case ast.For():
                node.iter = value
                self.generic_visit(node)
            case ast.With():
                node.items = [ast.withitem(value, item.optional_vars) for item in node.items]
                self.generic_visit(node)
            case ast.Import() | ast.ImportFrom():
                names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
                targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names if name != "*"]
                return ast.copy_location(ast.Assign(targets, value) if targets else ast.Pass(), node)
            case ast.FunctionDef():
                node.decorator_list = []
            case ast.ClassDef():
                return ast.copy_location(ast.Assign([ast.Name(node.name, ast.Store())], value), node)
            case _:
                return ast.copy_location(ast.Pass(), node)
        return node

    def _stand_in(self, node: ast.stmt, place: Place) -> ast.expr:
        """Return the call that makes the stand-in, at the place of the value that it replaces."""
        has_value = isinstance(node, ast.Assign | ast.Expr | ast.Return)
        role = Role.VALUE
        if has_value and any(
            isinstance(part, ast.Attribute) and part.attr == "writeStream" for part in ast.walk(node)
        ):
            role = Role.QUERY
        elif has_value and _makes_table(node):
            role = Role.TABLE
        call = ast.Call(
            ast.Name(_FUNCTION, ast.Load()),
            [ast.Constant(part) for part in place],
            [ast.keyword("role", ast.Constant(str(role)))],
        )
        old_value = getattr(node, "value", None)
        if any(
            isinstance(part, ast.Attribute) and part.attr == "awaitTermination" for part in ast.walk(node)
        ):
            call = ast.Call(ast.Attribute(call, "awaitTermination", ast.Load()), [], [])
        return ast.copy_location(call, old_value if isinstance(old_value, ast.AST) else node)


def _makes_table(node: ast.stmt) -> bool:
    """Return whether a statement makes a table by `createDataFrame`, and only derives others from it."""
    chain: ast.AST | None = getattr(node, "value", None)
    while isinstance(chain, ast.Call) and isinstance(chain.func, ast.Attribute):
        if chain.func.attr == "createDataFrame":
            return True
        if chain.func.attr not in _DERIVING:
            return False
        chain = chain.func.value
    return False
