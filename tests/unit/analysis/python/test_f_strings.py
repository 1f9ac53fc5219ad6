"""F-strings of Python 3.12 in the syntax of an older Python, on the same lines."""

from __future__ import annotations

import pytest

from millstream.analysis.python.f_strings import in_older_syntax


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ('x = f"{d["a"]}"', "x = f\"{d['a']}\""),
        ("x = f'{d['a']!r:>{w['b']}}'", 'x = f\'{d["a"]!r:>{w["b"]}}\''),
        ('x = f"{", ".join(v)}: {x != "a"}"', "x = f\"{', '.join(v)}: {x != 'a'}\""),
        ('x = f"{"\\n".join(v)}"', 'x = f"{str().join(map(chr, [10])).join(v)}"'),
        ('x = f"{f"{y}"}"', "x = f\"{f'{y}'}\""),
        ('# it\'s\nx = f"{{}}{d["a"]}" + \'"\'', "# it's\nx = f\"{{}}{d['a']}\" + '\"'"),
        ('x = f"""{d["""a"""]}"""', 'x = f"""{d[\'a\']}"""'),
    ],
)
def test_an_expression_gets_other_quotes_than_its_f_string(newer: str, older: str) -> None:
    assert in_older_syntax(newer) == older


@pytest.mark.parametrize(
    "text", ["x = (", 'x = f"{', 'x = f"{y', 'x = f"{\n d["a"]}"', 'x = f"{f"{f"{y}"}"}"']
)
def test_what_has_no_older_form_stays_an_error(text: str) -> None:
    assert in_older_syntax(text) is None
