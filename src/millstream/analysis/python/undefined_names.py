"""Names that code reads although neither its file nor Python defines them: the read raises a NameError."""

from __future__ import annotations

import ast
import builtins
import dis
import types
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.analysis.python.parsing import parse_or_none

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
# A file that uses one of these may define a name in another way, or expect that it is missing.
_INDIRECT = frozenset({"NameError", "globals", "exec", "setattr"})


@dataclass(frozen=True)
class UndefinedName:
    """A name, and the first line that reads it."""

    name: str
    line: int


def list_undefined_names(
    text: str, function: str = "", starred: Collection[str] | None = None
) -> list[UndefinedName]:
    """Return the names that a file reads and does not define; with `function`, only those that it needs.

    A function needs the names that it reads itself, and those that other functions and classes of the file read which
    it uses. `starred` are the names that the file's `import *` give it. Without them, a file that has one may define
    any name, and so may one that uses `globals` or `exec`: no name is returned.
    """
    tree = parse_or_none(text)
    module = None if tree is None else _compile(tree)
    if tree is None or module is None or _may_define_any(tree, has_starred=starred is not None):
        return []
    defined = {*_list_names(module, ("STORE_NAME",)), *(starred or ())}
    defined |= {name for code in _walk(module) for name in _list_names(code, ("STORE_GLOBAL",))}
    lines: dict[str, int] = {}
    for code in _list_needed(module, function):
        for name, line in _list_reads(code):
            if name not in defined and not hasattr(builtins, name) and not name.startswith("__"):
                lines[name] = min(line, lines.get(name, line))
    names = [UndefinedName(name, line) for name, line in lines.items()]
    return sorted(names, key=lambda undefined: (undefined.line, undefined.name))


def list_global_names(text: str) -> set[str]:
    """Return the names that a text reads and that are no variables of its functions, or that they declare global."""
    tree = parse_or_none(text)
    module = None if tree is None else _compile(tree)
    if tree is None or module is None:
        return set()
    declared = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    return declared | {name for code in _walk(module) for name, _ in _list_reads(code)}


def _compile(tree: ast.Module) -> types.CodeType | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            # Not with the `annotations` of this module: a file without them reads names in annotations when it runs.
            return compile(tree, "<text>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            return None


def _list_reads(code: types.CodeType) -> Iterator[tuple[str, int]]:
    """Yield the names, with their lines, that code reads from its module or from Python."""
    own = set(_list_names(code, ("STORE_NAME",)))
    for step in dis.get_instructions(code):
        if step.opname in _LOADS and str(step.argval) not in own:
            yield str(step.argval), (step.positions and step.positions.lineno) or code.co_firstlineno


def _may_define_any(tree: ast.Module, *, has_starred: bool) -> bool:
    return any(
        (isinstance(node, ast.ImportFrom) and node.names[0].name == "*" and not has_starred)
        or (isinstance(node, ast.Name) and node.id in _INDIRECT)
        for node in ast.walk(tree)
    )


def _list_needed(module: types.CodeType, function: str) -> Iterator[types.CodeType]:
    """Yield the code of a file; with `function`, that of the function and of those of the file that it uses."""
    if not function:
        yield from _walk(module)
        return
    inner = [constant for constant in module.co_consts if isinstance(constant, types.CodeType)]
    waiting, seen = [function], set()
    while waiting:
        seen.add(name := waiting.pop())
        for code in [
            part for definition in inner if definition.co_name == name for part in _walk(definition)
        ]:
            yield code
            waiting += set(code.co_names) - seen


def _walk(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and those inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _walk(constant)


def _list_names(code: types.CodeType, operations: Collection[str]) -> Iterator[str]:
    """Yield the names of a code object's instructions with these operations."""
    for step in dis.get_instructions(code):
        if step.opname in operations:
            yield str(step.argval)
