"""A checkpoint that is not on a file system of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """What `run` refuses: a checkpoint is held by a lock of the machine that runs it."""
    pipeline = facts.pipeline
    told = set()
    for query in pipeline.queries:
        place = pipeline.checkpoint(query)
        own = pipeline.queries[query].checkpoint is not None
        path = ("queries", query, "checkpoint") if own else ("defaults", "checkpoints")
        if place.local is not None or path in told:
            continue
        told.add(path)
        yield CODE.error(
            f"the checkpoint of '{query}' is not on a file system of this machine",
            facts.places.value(*path),
            why="a run holds its checkpoint by a lock, which an object store does not have: two runs would write "
            "one checkpoint",
            fix="name a local or mounted folder",
            query=query,
        )
