"""The functions of a Python file as its text says, without running it."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass


@dataclass(frozen=True)
class Function:
    """A function at the top of a file: its name, the line of its `def`, and the names of its parameters."""

    name: str
    line: int
    parameters: tuple[str, ...]


def functions(text: str) -> dict[str, Function]:
    """The public functions at the top of a Python text, by name; none when it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            given = node.args
            names = tuple(item.arg for item in (*given.posonlyargs, *given.args, *given.kwonlyargs))
            found[node.name] = Function(node.name, node.lineno, names)
    return found
