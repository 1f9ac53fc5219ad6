"""The paths through a function's statements: on which the most actions run, and which calls not each batch makes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from millstream.analysis.python.call_chain import CallChain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

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


def find_guarded_calls(body: Sequence[ast.stmt], frames: Collection[str]) -> set[int]:
    """Return the `id()` of each call that a condition or a caught exception keeps from running in every batch.

    `frames` are the names of the batch. A condition about its rows does not count: `if batch.count() > 0`.
    """
    about_batch = {*frames}
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign) and CallChain.of(node.value).root in about_batch:
                about_batch |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {
        id(node)
        for statement in _list_guarded(body, about_batch)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
    }


def _list_guarded(body: Sequence[ast.stmt], about_batch: Collection[str]) -> Iterator[ast.stmt]:
    """Yield the statements that do not run in every batch with rows."""
    for number, statement in enumerate(body):
        if isinstance(statement, ast.If) and not _is_about(statement.test, about_batch):
            yield from (*statement.body, *statement.orelse)
            if any(
                isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break)
                for node in ast.walk(statement)
            ):
                yield from body[number + 1 :]
                return
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _list_guarded(getattr(statement, name, []), about_batch)
        for handler in getattr(statement, "handlers", []):
            yield from handler.body


def _is_about(test: ast.expr, about_batch: Collection[str]) -> bool:
    """Return whether a condition is about the batch alone, or is always the same."""
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    return names <= {*about_batch, "len", "bool", "int"}
