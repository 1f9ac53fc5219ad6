"""Reads of local names before they are assigned, as in a function that forgets `global`."""

from __future__ import annotations

import ast
import textwrap

import pytest

from millstream.analysis.python.unbound_names import find_unbound_name


def find(body: str) -> str | None:
    """The name that a function with this body reads too early, and its line."""
    function = ast.parse(f"def store(batch, number):\n{textwrap.indent(body, '    ')}").body[0]
    assert isinstance(function, ast.FunctionDef)
    name = find_unbound_name(function)
    return name and f"{name.id}:{name.lineno}"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("count += 1", "count:2"),
        ("if not rows:\n    return\nrows = []", "rows:2"),
        ("rows = rows + [batch]", "rows:2"),
        ("send(rows)\nrows: list = []", "rows:2"),
        ("rows[0] = 1\nrows = []", "rows:2"),
        ("if number:\n    rows = []\nsend(rows)", None),
        ("rows = []\nrows += [1]", None),
        ("global count\ncount += 1", None),
        ("batch = batch.select('a')", None),
        ("for row in batch:\n    if row:\n        send(last)\n    last = row", None),
        ("try:\n    rows = []\nexcept OSError:\n    rows = None\nsend(rows)", None),
        ("names = [name for name in batch]\nname = 1", None),
        ("send(lambda: rows)\nrows = []", None),
        ("try:\n    send(rows)\nexcept UnboundLocalError:\n    pass\nrows = []", None),
        ("with here() as rows:\n    send(rows)\nrows = []", None),
        ("print(json)\nimport json", None),
        ("rows[number] = 1", None),
        ("table.name = 1", None),
    ],
)
def test_a_name_that_is_read_before_every_assignment_is_found(body: str, found: str | None) -> None:
    assert find(body) == found
