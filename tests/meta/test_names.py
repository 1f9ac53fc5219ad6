"""Names stand for one thing, and say what that thing is."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


def parse_package(package: Path) -> Iterator[tuple[str, ast.Module]]:
    """Yield the path of each module from the top of the package, and its tree."""
    for file in sorted(package.rglob("*.py")):
        yield str(file.relative_to(package)), ast.parse(file.read_text(encoding="utf-8"))


def public_classes(package: Path) -> dict[str, list[str]]:
    """The files that define each public class, from the top of the package."""
    files: dict[str, list[str]] = defaultdict(list)
    for file, tree in parse_package(package):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(file)
    return files


def refused_functions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each function whose whole name is a participle or an adverb."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.strip("_") in NO_FUNCTION:
            yield node.lineno, node.name


def refused_booleans(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each function that returns a boolean and is named by an adjective."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef)
            and node.name.strip("_") in NO_BOOLEAN
            and node.returns is not None
            and ast.unparse(node.returns) == "bool"
        ):
            yield node.lineno, node.name


def refused_variables(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each parameter and each local variable with a word of the list."""
    fields = {
        id(statement.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
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

    assert public_classes(tmp_path) == {"Report": ["one.py", "two.py"]}


def test_a_function_named_by_a_participle_is_noticed() -> None:
    tree = ast.parse("class A:\n    def told(self): ...\n    def told_lines(self): ...\ndef _held(): ...\n")

    assert sorted(refused_functions(tree)) == [(2, "told"), (4, "_held")]


def test_a_boolean_named_by_an_adjective_is_noticed() -> None:
    tree = ast.parse("def alive() -> bool: ...\ndef is_alive() -> bool: ...\ndef idle() -> int: ...\n")

    assert list(refused_booleans(tree)) == [(1, "alive")]


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

    names = [name for _, name in sorted(refused_variables(ast.parse(text)))]

    assert sorted(names) == ["found", "given", "kept", "made", "one", "said", "told", "wanted"]


def test_no_public_class_name_stands_twice(root: Path) -> None:
    classes = public_classes(root / "src/millstream")

    assert "Pipeline" in classes
    assert {name: files for name, files in classes.items() if len(files) > 1} == {}


def test_no_function_is_named_by_a_participle_or_an_adjective(root: Path) -> None:
    package = dict(parse_package(root / "src/millstream"))

    assert "pipeline/model.py" in package
    assert [(file, *hit) for file, tree in package.items() for hit in refused_functions(tree)] == []
    assert [(file, *hit) for file, tree in package.items() for hit in refused_booleans(tree)] == []


# Sources of users' scripts and processors, which are called as their authors would.
USER_CODE = ("scripts/", "spark/cases/", "spark/restarts/")


@pytest.mark.parametrize("folder", ["tests", "tools", "benchmarks"])
def test_no_helper_is_named_by_a_participle_or_an_adjective(root: Path, folder: str) -> None:
    files = [(file, tree) for file, tree in parse_package(root / folder) if not file.startswith(USER_CODE)]

    assert len(files) > 10
    assert [(file, *hit) for file, tree in files for hit in refused_functions(tree)] == []


def test_no_variable_is_named_by_what_happened_to_it(root: Path) -> None:
    package = parse_package(root / "src/millstream")

    assert [(file, *hit) for file, tree in package for hit in refused_variables(tree)] == []
