"""A checkpoint that is not on a local or mounted file system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report remote checkpoints, which `run` refuses because it locks each checkpoint on its machine."""
    pipeline = facts.pipeline
    reported = set()
    for query in pipeline.queries:
        place = pipeline.checkpoint(query)
        has_own_path = pipeline.queries[query].checkpoint is not None
        path = ("queries", query, "checkpoint") if has_own_path else ("defaults", "checkpoints")
        if place.local is not None or path in reported:
            continue
        reported.add(path)
        yield CODE.error(
            f"the checkpoint of '{query}' is not on a file system of this machine",
            facts.places.value(*path),
            why="a run locks its checkpoint, and object stores have no locks: two runs could write "
            "the same checkpoint",
            fix="use a local or mounted folder",
            query=query,
        )
