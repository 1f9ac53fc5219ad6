"""Checkpoints of two queries in one folder, or one inside another."""

from __future__ import annotations

import posixpath
from itertools import combinations
from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Every pair of queries, then every checkpoint against the folders that sinks write."""
    pipeline = facts.pipeline
    folders = {query: _plain(pipeline.checkpoint(query)) for query in pipeline.queries}
    for one, other in combinations(folders, 2):
        if folders[one] == folders[other]:
            said = f"queries '{one}' and '{other}' have the same checkpoint"
        elif _inside(folders[one], folders[other]) or _inside(folders[other], folders[one]):
            said = f"the checkpoints of '{one}' and '{other}' lie one in the other"
        else:
            continue
        blamed = other if pipeline.queries[other].checkpoint else one
        yield CODE.error(
            said,
            facts.places.value("queries", blamed, "checkpoint"),
            why="each would continue at the other's offsets, and rows would be lost without a word",
            fix="give each query a checkpoint of its own, or leave 'checkpoint' out",
            query=blamed,
        )
    for query, _, entry in facts.sinks():
        target = _plain(entry.sink.target())
        for owner, folder in folders.items():
            if target.startswith("/") and (target == folder or _inside(folder, target)):
                yield CODE.error(
                    f"the checkpoint of '{owner}' lies in the folder that '{query}' writes",
                    facts.places.value("queries", owner, "checkpoint"),
                    why="readers of the folder would take the checkpoint's files for rows",
                    fix="move the checkpoint out of it",
                    query=owner,
                )


def _plain(path: str) -> str:
    """A path without what does not matter: `file:`, doubled slashes, dots."""
    if "://" in path and not path.startswith("file:"):
        return path.rstrip("/")
    return posixpath.normpath("/" + path.removeprefix("file:").lstrip("/") if path[:5] == "file:" else path)


def _inside(inner: str, outer: str) -> bool:
    return inner.startswith(outer.rstrip("/") + "/")
