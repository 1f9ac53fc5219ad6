"""The checkpoints of two queries are in the same folder, or one is inside the other."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from millstream.analysis.folder_paths import is_inside, normalize_path
from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Compare the checkpoints of every two queries, then every checkpoint with the folders that sinks write."""
    pipeline = facts.pipeline
    folders = {query: normalize_path(pipeline.checkpoint(query)) for query in pipeline.queries}
    for first_query, other_query in combinations(folders, 2):
        if folders[first_query] == folders[other_query]:
            message = f"queries '{first_query}' and '{other_query}' have the same checkpoint"
        elif is_inside(folders[first_query], folders[other_query]) or is_inside(
            folders[other_query], folders[first_query]
        ):
            message = (
                f"the checkpoint of '{first_query}' or '{other_query}' is inside that of the other query"
            )
        else:
            continue
        reported = other_query if pipeline.queries[other_query].checkpoint else first_query
        yield CODE.error(
            message,
            facts.places.value("queries", reported, "checkpoint"),
            why="each query would continue from the offsets of the other, and rows would be lost without an error",
            fix="give each query its own folder, or remove 'checkpoint' to use the default folders",
            query=reported,
        )
    for query, _, entry in facts.sinks():
        target = normalize_path(entry.sink.target())
        for owner, folder in folders.items():
            if target.startswith("/") and (target == folder or is_inside(folder, target)):
                yield CODE.error(
                    f"the checkpoint of '{owner}' is inside the folder that '{query}' writes",
                    facts.places.value("queries", owner, "checkpoint"),
                    why="readers of that folder would read the files of the checkpoint as rows",
                    fix="move the checkpoint to another folder",
                    query=owner,
                )
