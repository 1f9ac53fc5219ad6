"""Names stand for one thing, and say what that thing is."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

Place = tuple[str, int, str]
"""A file, a line and a name."""

# Participles and adverbs: no function or method has one of them as its whole name. It is a verb and its object.
NO_FUNCTION = {
    *("again", "answer", "apart", "asked", "aside", "begun", "came", "cut", "done", "elsewhere"),
    *("found", "given", "gone", "held", "kept", "known", "left", "lost", "made", "marks"),
    *("moved", "named", "one", "own", "played", "put", "ran", "refused", "rest", "said", "seen"),
    *("sent", "shown", "taken", "tell", "told", "tried", "wanted", "whole", "written", "wrong"),
}
# Words for what happened to a thing: no local variable or parameter is called so.
NO_VARIABLE = {
    *("again", "answer", "aside", "asked", "cut", "elsewhere", "found", "given", "held", "kept"),
    *("made", "marks", "one", "ran", "said", "tell", "told", "wanted", "whole"),
}
# Adjectives and adverbs: a function that returns a boolean begins with is_, has_ or can_.
NO_BOOLEAN = {
    *(
        "active",
        "alive",
        "closed",
        "delivered",
        "ended",
        "ends",
        "fine",
        "fits",
        "here",
        "idle",
        "local",
        "numeric",
    ),
    *("real", "sending", "spent", "stateful", "streaming", "unfinished", "unreadable", "up", "waits"),
}


@dataclass
class PackageNames:
    """The names in the Python files of a folder, by the path from that folder."""

    files: list[str] = field(default_factory=list)
    classes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The files that define each public class."""
    functions: list[Place] = field(default_factory=list)
    """Functions and methods that are named by a participle or an adverb."""
    booleans: list[Place] = field(default_factory=list)
    """Functions that return a boolean and are named by an adjective."""
    variables: list[Place] = field(default_factory=list)
    """Parameters and local variables with a word of the list."""


_NAMING = (
    *(ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef),
    *(ast.arg, ast.ExceptHandler, ast.MatchAs, ast.Name),
)


@cache
def read_names(package: Path) -> PackageNames:
    """Read the names of all modules; only one tree is in memory at a time, as Python collects slowly among many."""
    names = PackageNames()
    for path in sorted(package.rglob("*.py")):
        file, tree = str(path.relative_to(package)), ast.parse(path.read_text(encoding="utf-8"))
        names.files.append(file)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                names.classes[node.name].append(file)
        nodes = [node for node in ast.walk(tree) if isinstance(node, _NAMING)]
        names.functions += [(file, *place) for place in refused_functions(nodes)]
        names.booleans += [(file, *place) for place in refused_booleans(nodes)]
        names.variables += [(file, *place) for place in refused_variables(nodes)]
    return names


def refused_functions(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each function whose whole name is a participle or an adverb."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.strip("_") in NO_FUNCTION:
            yield node.lineno, node.name


def refused_booleans(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each function that returns a boolean and is named by an adjective."""
    for node in nodes:
        if (
            isinstance(node, ast.FunctionDef)
            and node.name.strip("_") in NO_BOOLEAN
            and node.returns is not None
            and ast.unparse(node.returns) == "bool"
        ):
            yield node.lineno, node.name


def refused_variables(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each parameter and each local variable with a word of the list."""
    fields = {
        id(statement.target)
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in nodes:
        match node:
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                pass
            case ast.Name(id=name, ctx=ast.Store()) if id(node) not in fields:
                pass
            case _:
                continue
        if name.strip("_") in NO_VARIABLE:
            yield node.lineno, name


def test_a_class_that_two_files_define_is_noticed(tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("class Report: ...\n\n\nclass _Private: ...\n")

    assert read_names(tmp_path).classes == {"Report": ["one.py", "two.py"]}


def test_a_function_named_by_a_participle_is_noticed() -> None:
    tree = ast.parse("class A:\n    def told(self): ...\n    def told_lines(self): ...\ndef _held(): ...\n")

    assert sorted(refused_functions(ast.walk(tree))) == [(2, "told"), (4, "_held")]


def test_a_boolean_named_by_an_adjective_is_noticed() -> None:
    tree = ast.parse("def alive() -> bool: ...\ndef is_alive() -> bool: ...\ndef idle() -> int: ...\n")

    assert list(refused_booleans(ast.walk(tree))) == [(1, "alive")]


def test_a_variable_with_a_word_of_the_list_is_noticed_wherever_it_is_bound() -> None:
    text = """
class A:
    held: int

def count(made, *, wanted=1):
    found = [one for one in made]
    with open("x") as told:
        pass
    try:
        kept = lambda said: said
    except ValueError as given:
        pass
"""

    names = [name for _, name in sorted(refused_variables(list(ast.walk(ast.parse(text)))))]

    assert sorted(names) == ["found", "given", "kept", "made", "one", "said", "told", "wanted"]


def test_no_public_class_name_stands_twice(root: Path) -> None:
    classes = read_names(root / "src/millstream").classes

    assert "Pipeline" in classes
    assert {name: files for name, files in classes.items() if len(files) > 1} == {}


def test_no_function_is_named_by_a_participle_or_an_adjective(root: Path) -> None:
    names = read_names(root / "src/millstream")

    assert "pipeline/model.py" in names.files
    assert (names.functions, names.booleans) == ([], [])


# Sources of users' scripts and processors, which are called as their authors would.
USER_CODE = ("scripts/", "spark/cases/", "spark/restarts/")


@pytest.mark.parametrize("folder", ["tests", "tools", "benchmarks"])
def test_no_helper_is_named_by_a_participle_or_an_adjective(root: Path, folder: str) -> None:
    names = read_names(root / folder)

    assert len(names.files) > 10
    assert [place for place in names.functions if not place[0].startswith(USER_CODE)] == []


def test_no_variable_is_named_by_what_happened_to_it(root: Path) -> None:
    assert read_names(root / "src/millstream").variables == []
