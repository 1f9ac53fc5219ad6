"""A checkpoint is on a file system on which no run can lock it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.checkpoint.remote.file_system import OBJECT_STORES, SCHEMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)

_OTHERS = (
    "a lock needs a store on which only one of two runs can create a file, and on which a run that has lost the "
    "lock can no longer change files; Millstream knows this only of HDFS and S3"
)
_OTHER_CLIENTS = "PySpark has no client for this scheme; for S3, it has one for s3a://"


def check(facts: Facts) -> Iterator[Finding]:
    """Report checkpoints on other remote file systems than HDFS and S3, which `run` refuses."""
    pipeline = facts.pipeline
    reported = set()
    for query in pipeline.queries:
        place = pipeline.checkpoint(query)
        has_own_path = pipeline.queries[query].checkpoint is not None
        path = ("queries", query, "checkpoint") if has_own_path else ("defaults", "checkpoints")
        scheme = place.partition("://")[0]
        if place.local is not None or scheme in (*SCHEMES, *OBJECT_STORES) or path in reported:
            continue
        reported.add(path)
        is_s3 = scheme in ("s3", "s3n")
        yield CODE.error(
            f"the checkpoint of '{query}' is on '{scheme}', where Millstream cannot lock it",
            facts.places.value(*path),
            why=_OTHER_CLIENTS if is_s3 else _OTHERS,
            fix="write s3a:// as the scheme"
            if is_s3
            else "use a local or mounted folder, or one on hdfs:// or s3a://",
            query=query,
        )
