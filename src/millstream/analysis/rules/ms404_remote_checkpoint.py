"""A checkpoint on a file system on which no run can lock it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.checkpoint.remote.file_system import SCHEMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report checkpoints on other remote file systems than HDFS, which `run` refuses."""
    pipeline = facts.pipeline
    reported = set()
    for query in pipeline.queries:
        place = pipeline.checkpoint(query)
        has_own_path = pipeline.queries[query].checkpoint is not None
        path = ("queries", query, "checkpoint") if has_own_path else ("defaults", "checkpoints")
        scheme = place.partition("://")[0]
        if place.local is not None or scheme in SCHEMES or path in reported:
            continue
        reported.add(path)
        yield CODE.error(
            f"the checkpoint of '{query}' is on '{scheme}', where a run cannot lock it",
            facts.places.value(*path),
            why="a lease needs a file that only one of two runs can create, and renames that happen at once: "
            "HDFS has both, and on an object store two runs could write the same checkpoint",
            fix="use a local or mounted folder, or one on hdfs://",
            query=query,
        )
