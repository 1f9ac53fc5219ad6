"""A checkpoint on a file system on which no run can lock it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.checkpoint.remote.file_system import SCHEMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)

_OTHERS = (
    "a lease needs a file that only one of two runs can create, and renames that happen at once: HDFS has both, and "
    "on an object store two runs could write the same checkpoint"
)
# Tried with Hadoop 3.5 (`FileSystem.create`), see docs/decisions/remote-checkpoints.md.
_S3 = (
    "S3 itself can refuse a second writer, but Spark writes its offsets through Hadoop's client, which does not ask "
    "for that: a suspended run could replace the offsets of a batch that its successor has written"
)


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
            why=_S3 if scheme in ("s3", "s3a", "s3n") else _OTHERS,
            fix="use a local or mounted folder, or one on hdfs://",
            query=query,
        )
