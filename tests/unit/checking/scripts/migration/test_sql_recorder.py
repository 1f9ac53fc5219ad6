"""Operators of PySpark's columns become operators of SQL."""

from __future__ import annotations

import pytest

from millstream.checking.scripts.migration.sql_recorder import NotSayable, _Select, resolve_operators


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("`=`(op, 'd')", "(op = 'd')"),
        ("`>`(`+`(a, 1), f(b, c))", "((a + 1) > f(b, c))"),
        ("`=`(name, 'a, (b')", "(name = 'a, (b')"),
        ("`!`(`=`(a, 1))", "(! (a = 1))"),
        ("upper(`my name`)", "upper(`my name`)"),
    ],
)
def test_an_operator_stands_between_its_operands(text: str, sql: str) -> None:
    assert resolve_operators(text) == sql


def test_a_call_that_does_not_end_is_refused() -> None:
    with pytest.raises(NotSayable):
        resolve_operators("`=`(a, (1")


@pytest.mark.parametrize(
    ("conditions", "where"),
    [
        (("(a AND b) OR c",), "(a AND b) OR c"),
        (("(a AND b) OR c", "d"), "((a AND b) OR c) AND (d)"),
        (("(a) OR (b)", "(c)"), "((a) OR (b)) AND (c)"),
        (("(a = ')') OR b", "(c = '(')"), "((a = ')') OR b) AND (c = '(')"),
        (("a -- b", "c"), "(a -- b\n) AND (c)"),
    ],
)
def test_each_of_several_conditions_is_in_parentheses(conditions: tuple[str, ...], where: str) -> None:
    assert _Select("orders", where=conditions).text.partition("WHERE ")[2] == where
