"""Cut the statements that build a query's table out of a script, as a function of its sources."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.analysis.python.unbound_names import find_unbound_name
from millstream.analysis.python.undefined_names import list_undefined_names
from millstream.checking.scripts.migration.script_statements import (
    is_assignment,
    is_constant,
    list_assigned,
    list_bound,
    list_changed,
    list_globals,
    list_read,
    list_registered_views,
    list_starred,
    list_texts,
    makes_session,
    with_own_session,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_STARTS = ("start", "toTable")
_READS = ("readStream", "read")
_READERS = ("load", "json", "csv", "parquet", "orc", "text", "xml", "table", "jdbc")
# Also the functions of `dlt`.
_TABLE_READERS = ("table", "read", "read_stream", "readStream")
# What gives a script its arguments.
_ARGUMENTS = ("argv", "parse_args")

TableReader = Callable[[str, bool, int], str]


class NotMovable(Exception):
    """The code of a query cannot be cut out. The text says why, with the line."""


@dataclass
class CodeSlice:
    """A function of sources that returns the table of a query, and what it needs in addition."""

    function: str
    sources: list[str]
    imports: list[str] = field(default_factory=list)
    definitions: list[str] = field(default_factory=list)
    """Functions, classes and values of the script's module, in its order."""


@dataclass(frozen=True)
class _Binding:
    """Parameters of a function, or variables of a loop, which hide names of the code around it."""

    names: frozenset[str]
    line: int


class ScriptCode:
    """The syntax tree of a script, from which the code of queries is cut."""

    def __init__(
        self, texts: Sequence[str], sources: Mapping[int, str], tables: TableReader | None = None
    ) -> None:
        """`texts` are the script, or the cells of a notebook, each on its lines in the file.

        A cell that Python cannot read is left out.
        `sources` are the names of the sources by the line of the call that reads them.

        `tables` returns the view for a table that is read, given its name, whether it is read as a stream, and the
        line; "" for a table that is not a view of the project.
        """
        self._tree = _parse_readable(texts)
        self._sources = sources
        self._tables = tables
        self._parents = {
            id(child): node for node in ast.walk(self._tree) for child in ast.iter_child_nodes(node)
        }
        self._starred = list_starred(self._tree)

    @property
    def defined_names(self) -> set[str]:
        """The names of the functions and classes of the script's module."""
        return {node.name for node in self._tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}

    def extract(self, name: str, line: int) -> CodeSlice:
        """Return the function for the query that is started on a line. Raises NotMovable."""
        call = next((node for node in ast.walk(self._tree) if _is_start(node) and _ends_on(node, line)), None)
        if call is None:
            raise NotMovable(f"line {line} has no statement that starts the query")
        statements = self._statements_before(call)
        receiver = self._frame_of(call, statements)
        needed = list_read(self._replaced(receiver))
        body = self._needed_statements(statements, needed)
        self._refuse([*body, receiver])
        result = ast.copy_location(ast.Return(receiver), receiver)
        return self._slice(name, [*body, result], needed)

    def _slice(self, name: str, body: Sequence[ast.stmt], needed: set[str]) -> CodeSlice:
        """Return statements as a function, with all that they need. The last one returns its result."""
        sources = list(dict.fromkeys(source for part in body for source in self._sources_in(part)))
        # A parameter may have the name of another function of the module.
        needed -= set(sources)
        definitions = self._definitions(needed)
        lines = [line for part in body for line in ast.unparse(self._replaced(part)).splitlines()]
        if "spark" in needed and sources:
            lines.insert(0, f"spark = {sources[0]}.sparkSession")
        elif "spark" in needed:
            raise NotMovable(
                "its code uses the Spark session, but reads no DataFrame from which to get the session"
            )
        header = f"def {name}({', '.join(sources)}):"
        code = CodeSlice(
            "\n".join([header, *(f"    {line}" for line in lines)]),
            sources,
            [ast.unparse(node) for node in self._imports(needed)],
            [ast.unparse(node) for node in definitions],
        )
        self._refuse_missing([*code.imports, *code.definitions, code.function], [*body, *definitions])
        return code

    def extract_function(self, function: str, name: str) -> CodeSlice:
        """Return a function of the module, called `name`, with the sources and views that it reads as parameters.

        Its decorators are left out. Raises NotMovable.
        """
        node = next(
            (node for node in self._tree.body if isinstance(node, ast.FunctionDef) and node.name == function),
            None,
        )
        if node is None or node.args.args:
            raise NotMovable(f"the function {function} is not defined in the file itself, without parameters")
        has_docstring = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
        body: list[ast.stmt] = node.body[1:] if has_docstring else node.body
        needed = {name for part in body for name in list_read(self._replaced(part))}
        needed -= {name for part in body for name in list_assigned(part)}
        before = self._needed_statements(self._tree.body[: self._tree.body.index(node)], needed)
        parts = [*before, *body]
        self._refuse(parts)
        return self._slice(name, parts, needed)

    def function(self, name: str) -> tuple[list[str], list[str]]:
        """Return the imports and the definitions for a function of the script and all that it uses."""
        needed = {name}
        definitions = [with_own_session(node) for node in self._definitions(needed)]
        if not any(getattr(node, "name", "") == name for node in definitions):
            raise NotMovable(f"the function {name} is not defined in the script itself")
        imports = [ast.unparse(node) for node in self._imports(needed)]
        texts = [ast.unparse(node) for node in definitions]
        self._refuse_missing([*imports, *texts], definitions)
        return imports, texts

    def _refuse_missing(self, texts: Sequence[str], nodes: Sequence[ast.AST]) -> None:
        """Raise NotMovable if code of the project, which comes from these nodes, lacks a name."""
        names = [name.name for name in list_undefined_names("\n".join(texts), starred=self._starred)]
        (function,) = ast.parse(texts[-1]).body
        unbound = find_unbound_name(function) if isinstance(function, ast.FunctionDef) else None
        names += [unbound.id] if unbound is not None else []
        if not names:
            return
        lines = [
            part.lineno
            for node in nodes
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and part.id == names[0]
        ]
        raise NotMovable(f"line {min(lines, default=0)}: it needs '{names[0]}', which is not moved with it")

    def _statements_before(self, node: ast.AST) -> list[ast.stmt | _Binding]:
        """Return the statements that run before a call: those of the module, then those of its function."""
        scopes: list[Sequence[ast.stmt | _Binding]] = []
        current: ast.AST | None = node
        while current is not None and not isinstance(current, ast.Module):
            if isinstance(current, ast.stmt):
                siblings = self._siblings(current)
                index = next(number for number, sibling in enumerate(siblings) if sibling is current)
                scopes.insert(0, siblings[:index])
            current = self._parents.get(id(current))
            if names := list_bound(current):
                scopes.insert(0, [_Binding(names, getattr(current, "lineno", 0))])
        return [statement for scope in scopes for statement in scope]

    def _siblings(self, statement: ast.stmt) -> list[ast.stmt]:
        parent = self._parents[id(statement)]
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(parent, block, None)
            if isinstance(statements, list) and any(entry is statement for entry in statements):
                return statements
        return [statement]

    def _frame_of(self, call: ast.AST, statements: Sequence[ast.stmt | _Binding]) -> ast.expr:
        """Return the expression before `.writeStream`, also if the writer has its own name."""
        node: ast.AST = call
        while True:
            if isinstance(node, ast.Call):
                node = node.func
            elif isinstance(node, ast.Attribute):
                if node.attr == "writeStream":
                    return node.value
                node = node.value
            elif isinstance(node, ast.Name):
                assigned = [
                    part
                    for part in statements
                    if node.id in (part.names if isinstance(part, _Binding) else list_assigned(part))
                ]
                value = getattr(assigned[-1], "value", None) if assigned else None
                if value is None:
                    raise NotMovable(f"line {node.lineno}: no statement of the script assigns '{node.id}'")
                node = value
            else:
                raise NotMovable(
                    "the query is not started by a chain of calls such as df.writeStream.format(…).start()"
                )

    def _needed_statements(
        self, statements: Sequence[ast.stmt | _Binding], needed: set[str]
    ) -> list[ast.stmt]:
        """Return the statements that assign or change what is needed, and add what they need to `needed`."""
        body: list[ast.stmt] = []
        bound: set[str] = set()
        hidden: set[str] = set()
        for statement in reversed(statements):
            if isinstance(statement, _Binding):
                if unknown := sorted((statement.names & needed) - bound - hidden - {"spark"}):
                    raise NotMovable(
                        f"line {statement.line}: it needs '{unknown[0]}', a parameter or a variable of a loop"
                    )
                hidden |= statement.names
                continue
            if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
                continue
            if statement in self._tree.body and is_constant(statement):
                # It is among the definitions.
                continue
            views = list_registered_views(statement)
            is_view = any(view in text for view in views for part in body for text in list_texts(part))
            changed = (list_changed(statement) & needed) - hidden
            assigned = list_assigned(statement) - hidden
            if not is_view and not changed and not (assigned & needed):
                continue
            bound |= assigned
            if constants := sorted(name for name in changed if name.isupper()):
                raise NotMovable(f"line {statement.lineno}: it changes the constant '{constants[0]}'")
            if self._is_source(statement) or makes_session(statement):
                continue
            body.insert(0, statement)
            needed |= list_read(self._replaced(statement))
        return body

    def _is_source(self, statement: ast.stmt) -> bool:
        """Return whether a statement only gives a name to a source, which is a parameter then."""
        value = getattr(statement, "value", None)
        return isinstance(value, ast.Call) and self._source_of(value) in list_assigned(statement)

    def _source_of(self, node: ast.AST) -> str:
        """Return the name of the source that a call reads, "" for any other node."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return ""
        if table := self._table_of(node, node.func):
            return table
        if node.func.attr not in _READERS:
            return ""
        chain: ast.AST = node
        while isinstance(chain, ast.Call | ast.Attribute):
            if isinstance(chain, ast.Attribute) and chain.attr in _READS:
                return self._sources.get(node.func.end_lineno or 0, "")
            chain = chain.func if isinstance(chain, ast.Call) else chain.value
        return ""

    def _table_of(self, node: ast.Call, function: ast.Attribute) -> str:
        """Return the view that a call reads by the name of its table, "" for any other call."""
        if self._tables is None or function.attr not in _TABLE_READERS or len(node.args) != 1:
            return ""
        (argument,) = node.args
        if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
            return ""
        is_stream = any(
            isinstance(part, ast.Attribute) and part.attr in ("readStream", "read_stream")
            for part in ast.walk(function)
        )
        return self._tables(argument.value, is_stream, node.lineno)

    def _sources_in(self, node: ast.AST) -> Iterator[str]:
        known = set(self._sources.values())
        for part in ast.walk(node):
            if name := self._source_of(part):
                yield name
            elif isinstance(part, ast.Name) and part.id in known and isinstance(part.ctx, ast.Load):
                yield part.id

    def _replaced(self, node: ast.AST) -> ast.AST:
        """Return a copy of the code in which each read of a source is a name."""
        script = self

        class Reads(ast.NodeTransformer):
            def visit_Call(self, call: ast.Call) -> ast.AST:
                name = script._source_of(call)
                return (
                    ast.copy_location(ast.Name(name, ast.Load()), call) if name else self.generic_visit(call)
                )

        return Reads().visit(copy.deepcopy(node))  # type: ignore[no-any-return]

    def _refuse(self, parts: Sequence[ast.AST], attributes: Sequence[str] = (*_ARGUMENTS, "environ")) -> None:
        """Raise NotMovable for code that depends on how the script was called, or reads a source out of sight."""
        for part in parts:
            for node in ast.walk(self._replaced(part)):
                if isinstance(node, ast.Attribute) and node.attr == "readStream":
                    raise NotMovable(f"line {node.lineno}: it reads a source in a way that is not recognised")
                if isinstance(node, ast.Attribute) and node.attr in attributes:
                    raise NotMovable(f"line {node.lineno}: its code depends on arguments of the script")

    def _definitions(self, needed: set[str]) -> list[ast.stmt]:
        """Return the functions, classes and constants of the module that are needed, and all that they need of it.

        Adds what they read to `needed`. Raises NotMovable for a value that they need and that is not assigned by one
        statement of the module.
        """
        statements: list[ast.stmt] = []
        waiting, seen = set(needed), set()
        inner: set[str] = set()
        while waiting:
            name = waiting.pop()
            seen.add(name)
            value = self._value_of(name) if name in inner else None
            for node in self._tree.body:
                is_function = isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
                is_value = node is value or (is_constant(node) and name in list_assigned(node))
                if (is_function or is_value) and node not in statements:
                    self._refuse([node] if is_value else [], _ARGUMENTS)
                    statements.append(node)
                    reads = list_globals(node)
                    needed |= reads
                    waiting |= reads - (seen & inner)
                    inner |= reads
        return sorted(statements, key=lambda node: node.lineno)

    def _value_of(self, name: str) -> ast.stmt | None:
        """Return the statement of the module that gives a name its value; None for other names and constants.

        Raises NotMovable if other statements give it a value too, or change it.
        """
        functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        statements = [node for node in self._tree.body if not isinstance(node, functions)]
        assigned = [node for node in statements if name in list_assigned(node)]
        if not assigned or self._imports({name}) or any(makes_session(node) for node in assigned):
            return None
        others = [*assigned[1:], *(node for node in statements if name in list_changed(node))]
        if is_constant(assigned[0]) and others == assigned[1:]:
            return None
        if others or not is_assignment(assigned[0]):
            line = [*assigned[:1], *others][-1].lineno
            raise NotMovable(f"line {line}: no single statement gives '{name}' its value")
        return assigned[0]

    def _imports(self, needed: set[str]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [
                    alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) in needed
                ]
                if any(alias.name == "*" for alias in node.names):
                    result.append(node)
                elif names and isinstance(node, ast.Import):
                    result.append(ast.Import(names))
                elif names and isinstance(node, ast.ImportFrom):
                    result.append(ast.ImportFrom(node.module, names, node.level))
        return result


def _parse_readable(texts: Sequence[str]) -> ast.Module:
    """Return one syntax tree of all texts. Raises SyntaxError if there is one only, which cannot be read."""
    module = ast.Module(body=[], type_ignores=[])
    for text in texts:
        try:
            module.body += ast.parse(text).body
        except SyntaxError:
            if len(texts) == 1:
                raise
    return module


def _is_start(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _STARTS


def _ends_on(node: ast.AST, line: int) -> bool:
    function = getattr(node, "func", None)
    return getattr(function, "end_lineno", None) == line
