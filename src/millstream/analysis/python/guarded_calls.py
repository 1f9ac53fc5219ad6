"""Calls of a foreachBatch function that only run if something other than the batch says so."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from millstream.analysis.python.call_chain import CallChain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


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
