"""State which queries of a script were checked, and why the others were not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.diagnostics.finding import Span


@dataclass(frozen=True)
class JudgedQuery:
    """A query that a script starts. `reason` says why it could not be checked; it is empty if it was checked."""

    name: str
    span: Span | None
    reason: str = ""

    @property
    def place(self) -> str:
        """The position of its start: `job.py:88`; empty if it is not known."""
        return f"{self.span.file}:{self.span.line}" if self.span else ""

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"'{self.name}'{place} not: {self.reason}"


def format_judged(queries: Sequence[JudgedQuery]) -> str:
    """Return `3 of 4 queries judged; 'x' (job.py:88) not: its columns are not known`."""
    if not queries:
        return "no query judged"
    others = [str(query) for query in queries if query.reason]
    noun = "query" if len(queries) == 1 else "queries"
    return "; ".join([f"{len(queries) - len(others)} of {len(queries)} {noun} judged", *others])


def judged_to_json(query: JudgedQuery, target: str) -> dict[str, Any]:
    """Convert a query to the form in the JSON of `check`."""
    return {
        "query": query.name,
        "target": target,
        "file": query.span.file if query.span else None,
        "line": query.span.line if query.span else None,
        "judged": not query.reason,
        "reason": query.reason or None,
    }
