"""List the functions of a Python file by parsing it, without running it."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass


@dataclass(frozen=True)
class Function:
    """A module-level function: its name, the line of its `def`, and the names of its parameters."""

    name: str
    line: int
    parameters: tuple[str, ...]


def list_functions(text: str) -> dict[str, Function]:
    """Return the public module-level functions of a Python text by name; none if the text is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    functions_by_name = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            arguments = node.args
            names = tuple(
                item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            )
            functions_by_name[node.name] = Function(node.name, node.lineno, names)
    return functions_by_name
