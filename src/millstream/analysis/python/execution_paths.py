"""The path through a function's statements on which the most actions run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.diagnostics.finding import Span


def find_longest_path(body: Sequence[ast.stmt], list_actions: Callable[[ast.AST], list[Span]]) -> list[Span]:
    """Return the actions on the path through the statements with the most of them.

    `list_actions` returns those of a statement or an expression. A loop counts twice.
    """
    spans: list[Span] = []
    longest: list[Span] = []
    for statement in body:
        if isinstance(statement, ast.If):
            spans += list_actions(statement.test)
            then_spans = find_longest_path(statement.body, list_actions)
            else_spans = find_longest_path(statement.orelse, list_actions)
            for branch, other_branch, statements in (
                (then_spans, else_spans, statement.body),
                (else_spans, then_spans, statement.orelse),
            ):
                if statements and isinstance(statements[-1], ast.Return | ast.Raise):
                    longest = _pick_longest(longest, spans + branch)
                    spans += other_branch
                    break
            else:
                spans += _pick_longest(then_spans, else_spans)
        elif isinstance(statement, ast.For | ast.While):
            body_spans = find_longest_path(statement.body, list_actions)
            retries = any(isinstance(child, ast.Try) for child in statement.body)
            spans += list_actions(statement.iter if isinstance(statement, ast.For) else statement.test)
            spans += body_spans if retries else body_spans * 2
        elif isinstance(statement, ast.Try):
            for part in (statement.body, statement.orelse, statement.finalbody):
                spans += find_longest_path(part, list_actions)
        elif isinstance(statement, ast.With):
            for item in statement.items:
                spans += list_actions(item.context_expr)
            spans += find_longest_path(statement.body, list_actions)
        elif isinstance(statement, ast.Match):
            branches = [find_longest_path(case.body, list_actions) for case in statement.cases]
            spans += _pick_longest(*branches)
        elif not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            spans += list_actions(statement)
    return _pick_longest(longest, spans)


def _pick_longest(*branches: list[Span]) -> list[Span]:
    return max(branches, key=len)
