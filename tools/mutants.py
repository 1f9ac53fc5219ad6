"""Break the code in small ways, one at a time, and see whether the tests notice.

    python tools/mutants.py map --out /tmp/map.json -- tests/unit src
    python tools/mutants.py run --map /tmp/map.json --number 50 --seed 1 src/millstream/analysis/rules

`map` runs tests and notes which lines each of them reaches. `run` draws mutants of the lines that some test reaches,
runs the tests that reach the line of each until one fails, and prints those that no test notices. A mutant turns a
comparison, a condition, an `and` or an `or`, a number or a truth value around, or leaves a call or a `return` out.
The files of the repository are not touched: a mutant stands in a copy of `src`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mutant_map import OUT, SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PATIENCE = 600
"""Seconds that the tests of one mutant may take; a mutant that never ends is noticed."""
_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COUNTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv}


@dataclass(frozen=True)
class Mutant:
    """One change: the number of the node in its file, and what it does in words."""

    file: str
    line: int
    node: int
    what: str


def mutants(file: str, text: str) -> Iterator[Mutant]:
    """All mutants of a file."""
    for number, node in enumerate(ast.walk(ast.parse(text))):
        if (what := _change(node)) is not None:
            yield Mutant(file, node.lineno, number, what[0])  # type: ignore[attr-defined]


def mutated(text: str, mutant: Mutant) -> str:
    """The file with the mutant in it."""
    tree = ast.parse(text)
    node = next(node for number, node in enumerate(ast.walk(tree)) if number == mutant.node)
    change = _change(node)
    assert change is not None

    class Replace(ast.NodeTransformer):
        def visit(self, one: ast.AST) -> ast.AST:
            return change[1] if one is node else self.generic_visit(one)

    return ast.unparse(ast.fix_missing_locations(Replace().visit(tree)))


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


def draw(reached: dict[str, dict[str, list[str]]], under: list[str], number: int, seed: int) -> list[Mutant]:
    """So many mutants of lines that a test reaches, from files below one of these paths."""
    actual = [
        mutant
        for file, lines in sorted(reached.items())
        if any(file == path or file.startswith(path.rstrip("/") + "/") for path in under)
        for mutant in mutants(file, (ROOT / file).read_text(encoding="utf-8"))
        if str(mutant.line) in lines
    ]
    return random.Random(seed).sample(actual, min(number, len(actual)))


def noticed(mutant: Mutant, tests: list[str], copy: Path) -> bool:
    """Does one of these tests fail with the mutant in the copy?"""
    file = copy / mutant.file
    before = file.read_text(encoding="utf-8")
    file.write_text(mutated(before, mutant), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        result = subprocess.run(
            command, cwd=ROOT, env=env, timeout=PATIENCE, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(before, encoding="utf-8")
    return result.returncode != 0


def run(given: argparse.Namespace) -> int:
    """Draw, try and print; 1 when a mutant was not noticed."""
    reached = json.loads(given.map.read_text(encoding="utf-8"))
    drawn = draw(reached, given.paths or [SOURCES], given.number, given.seed)
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src")
        for number, mutant in enumerate(drawn, 1):
            tests = reached[mutant.file][str(mutant.line)][: given.tests]
            visited = noticed(mutant, tests, Path(folder))
            survivors += not visited
            words = "noticed" if visited else "NOT NOTICED"
            print(f"{number}/{len(drawn)} {mutant.file}:{mutant.line} {mutant.what}: {words}", flush=True)
    print(f"{len(drawn) - survivors} of {len(drawn)} mutants noticed, seed {given.seed}")
    return int(survivors > 0)


def map_lines(given: argparse.Namespace) -> int:
    """Run tests and note the lines that each reaches."""
    path = os.pathsep.join([str(ROOT / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, OUT: str(given.out.absolute())}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mutant_map", *given.words]
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode


def main() -> int:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    maps = commands.add_parser("map")
    maps.add_argument("--out", type=Path, required=True)
    maps.add_argument("words", nargs="*", help="what pytest is given, after --")
    maps.set_defaults(do=map_lines)
    runs = commands.add_parser("run")
    runs.add_argument("--map", type=Path, required=True)
    runs.add_argument("--number", type=int, default=50)
    runs.add_argument("--seed", type=int, default=1)
    runs.add_argument("--tests", type=int, default=200, help="at most so many tests of a line (200)")
    runs.add_argument("paths", nargs="*", help="files and folders below src/millstream; all unless given")
    runs.set_defaults(do=run)
    args = parser.parse_args()
    code: int = args.do(args)
    return code


if __name__ == "__main__":
    sys.exit(main())
