"""Checkpoints of two queries in the same folder, or one inside the other."""

from __future__ import annotations

import posixpath
from itertools import combinations
from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Compare the checkpoints of every two queries, then every checkpoint with the folders that sinks write."""
    pipeline = facts.pipeline
    folders = {query: _normalize(pipeline.checkpoint(query)) for query in pipeline.queries}
    for first_query, other_query in combinations(folders, 2):
        if folders[first_query] == folders[other_query]:
            message = f"queries '{first_query}' and '{other_query}' have the same checkpoint"
        elif _is_inside(folders[first_query], folders[other_query]) or _is_inside(
            folders[other_query], folders[first_query]
        ):
            message = f"one of the checkpoints of '{first_query}' and '{other_query}' is inside the other"
        else:
            continue
        reported = other_query if pipeline.queries[other_query].checkpoint else first_query
        yield CODE.error(
            message,
            facts.places.value("queries", reported, "checkpoint"),
            why="each would continue at the other's offsets, and rows would be lost silently",
            fix="give each query its own checkpoint, or leave 'checkpoint' out",
            query=reported,
        )
    for query, _, entry in facts.sinks():
        target = _normalize(entry.sink.target())
        for owner, folder in folders.items():
            if target.startswith("/") and (target == folder or _is_inside(folder, target)):
                yield CODE.error(
                    f"the checkpoint of '{owner}' is inside the folder that '{query}' writes",
                    facts.places.value("queries", owner, "checkpoint"),
                    why="readers of the folder would read the checkpoint's files as rows",
                    fix="move the checkpoint to another folder",
                    query=owner,
                )


def _normalize(path: str) -> str:
    """Return a path without `file:`, double slashes and dots."""
    if "://" in path and not path.startswith("file:"):
        return path.rstrip("/")
    return posixpath.normpath("/" + path.removeprefix("file:").lstrip("/") if path[:5] == "file:" else path)


def _is_inside(inner: str, outer: str) -> bool:
    return inner.startswith(outer.rstrip("/") + "/")
