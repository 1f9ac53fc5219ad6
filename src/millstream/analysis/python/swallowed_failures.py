"""The `try` statements of a foreachBatch function that may hide the failure of a write."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CATCH_ALL = frozenset({"Exception", "BaseException"})


def list_hiding_clauses(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.Try, list[ast.ExceptHandler]]]:
    """Yield each `try` after which the function raises nothing, with its clauses that catch anything.

    A function that raises after a `try`, or earlier in the same loop, may re-raise what the `try` has caught.
    """
    nodes = [child for statement in body for child in ast.walk(statement)]
    in_clauses = {
        id(child) for clause in nodes if isinstance(clause, ast.ExceptHandler) for child in ast.walk(clause)
    }
    raises = [child for child in nodes if isinstance(child, ast.Raise) and id(child) not in in_clauses]
    loops = [child for child in nodes if isinstance(child, ast.For | ast.While)]
    for attempt in nodes:
        if not isinstance(attempt, ast.Try):
            continue
        inside = {id(child) for statement in attempt.body for child in ast.walk(statement)}
        loop_lines = [loop.lineno for loop in loops if attempt in ast.walk(loop)]
        first = min([attempt.body[-1].end_lineno or attempt.lineno, *loop_lines])
        if not any(child.lineno >= first and id(child) not in inside for child in raises):
            yield attempt, [clause for clause in attempt.handlers if _catches_anything(clause)]


def _catches_anything(clause: ast.ExceptHandler) -> bool:
    """Return whether a clause is a bare `except`, or catches `Exception` or `BaseException`."""
    kinds = clause.type.elts if isinstance(clause.type, ast.Tuple) else [clause.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _CATCH_ALL) for kind in kinds)
