"""A checkpoint is in a folder that the operating system empties."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_EMPTIED = {
    "/tmp": "files in /tmp are deleted at a restart of the machine, or after some days",  # noqa: S108 - what is warned of
    "/private/tmp": "files in /tmp are deleted at a restart of the machine, or after some days",
    "/dev/shm": "/dev/shm is in memory: its files are lost when the machine stops",  # noqa: S108 - what is warned of
}


def check(facts: Facts) -> Iterator[Finding]:
    """Check checkpoints outside the project folder. A project that is itself in such a folder is a trial."""
    pipeline = facts.pipeline
    reported = set()
    for query in pipeline.queries:
        folder = pipeline.checkpoint(query).local
        if folder is None or folder.is_relative_to(pipeline.folder):
            continue
        place = PurePosixPath(folder)
        reason = next((text for root, text in _EMPTIED.items() if place.is_relative_to(root)), None)
        has_own_path = pipeline.queries[query].checkpoint is not None
        path = ("queries", query, "checkpoint") if has_own_path else ("defaults", "checkpoints")
        if reason is None or path in reported:
            continue
        reported.add(path)
        yield CODE.warning(
            f"the checkpoint of '{query}' is in {'/'.join(place.parts[:3]).replace('//', '/')}",
            facts.places.value(*path),
            label="is emptied",
            why=f"{reason}; without its checkpoint, the query starts from the beginning and writes its rows again",
            fix="use a persistent folder, or remove this setting: the default is '.millstream/checkpoints' in the "
            "folder of the spec",
            query=query,
        )
