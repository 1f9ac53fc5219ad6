"""Mutants of the code: which there are, and the code of one."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COUNTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv}


@dataclass(frozen=True)
class Mutant:
    """One change: the number of the node in its file, what it does, and the outermost function that holds it."""

    file: str
    line: int
    statement: int
    """The line at which the statement begins."""
    node: int
    what: str
    function: tuple[str, int] | None
    """Its qualified name and first line; None outside of functions."""
    part: str = ""

    @property
    def id(self) -> str:
        """The name of the mutant, for this text of the file."""
        return f"{self.file}:{self.line}:{self.node} {self.what}"


def find_mutants(file: str, text: str, part: str = "") -> Iterator[Mutant]:
    """All mutants of a file."""
    for number, (node, function, statement) in enumerate(_walk(ast.parse(text), (), None, 0)):
        if (change := _change(node)) is not None:
            yield Mutant(file, node.lineno, statement, number, change[0], function, part)  # type: ignore[attr-defined]


def draw_mutants(files: list[str], number: int, chance: random.Random, part: str) -> list[Mutant]:
    """So many mutants of these files."""
    mutants = [
        mutant
        for file in sorted(files)
        for mutant in find_mutants(file, (ROOT / file).read_text(encoding="utf-8"), part)
    ]
    return chance.sample(mutants, min(number, len(mutants)))


def mutate(text: str, number: int) -> str:
    """The text of a file with the node of this number changed; -1 changes none."""
    return ast.unparse(mutated_tree(text, number))


def mutated_tree(text: str, number: int) -> ast.Module:
    """The tree of a file with the node of this number changed; every node is at its old line."""
    tree = ast.parse(text)
    nodes = [node for node, _, _ in _walk(tree, (), None, 0)]

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            change = _change(node) if number >= 0 and node is nodes[number] else None
            return change[1] if change else self.generic_visit(node)

    changed = ast.fix_missing_locations(Replace().visit(tree))
    assert isinstance(changed, ast.Module)
    return changed


def _walk(
    node: ast.AST, classes: tuple[str, ...], function: tuple[str, int] | None, statement: int
) -> Iterator[tuple[ast.AST, tuple[str, int] | None, int]]:
    """Each node but those of annotations, with its outermost function and the line of its statement."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.stmt):
        statement = node.lineno
    yield node, function, statement
    for name, value in ast.iter_fields(node):
        owner = function
        if name in ("annotation", "returns"):
            continue
        if name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and function is None:
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            owner = ".".join((*classes, node.name)), first
        path = (*classes, node.name) if isinstance(node, ast.ClassDef) else classes
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, path, owner, statement)


def _change(node: ast.AST) -> tuple[str, ast.AST] | None:
    """What a mutant makes of a node, in words and as a node; None where nothing is changed."""
    result: tuple[str, ast.AST] | None = None
    match node:
        case ast.Compare(left, [op], other_items) if type(op) in _COMPARED:
            other = _COMPARED[type(op)]()
            result = f"{_name(op)} to {_name(other)}", ast.Compare(left, [other], other_items)
        case ast.BoolOp(ast.And(), values):
            result = "and to or", ast.BoolOp(ast.Or(), values)
        case ast.BoolOp(ast.Or(), values):
            result = "or to and", ast.BoolOp(ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            result = "not left out", operand
        case ast.If(test, body, orelse):
            result = "condition turned around", ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.BinOp(left, op, right) if type(op) in _COUNTED:
            other_op = _COUNTED[type(op)]()
            result = f"{_name(op)} to {_name(other_op)}", ast.BinOp(left, other_op, right)
        case ast.Constant(bool() as value):
            result = f"{value} to {not value}", ast.Constant(not value)
        case ast.Constant(int() as value):
            result = f"{value} to {value + 1}", ast.Constant(value + 1)
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            result = "returns None", ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call()):
            result = "call left out", ast.Pass()
    return result and (result[0], ast.copy_location(result[1], node))


def _name(op: ast.AST) -> str:
    return type(op).__name__
