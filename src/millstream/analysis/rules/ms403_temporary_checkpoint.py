"""A checkpoint in a folder that the machine empties by itself."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_EMPTIED = {
    "/tmp": "files in /tmp go with a start of the machine, or after some days",  # noqa: S108 - what is warned of
    "/private/tmp": "files in /tmp go with a start of the machine, or after some days",
    "/dev/shm": "/dev/shm is memory: its files go when the machine stops",  # noqa: S108 - what is warned of
}


def check(facts: Facts) -> Iterator[Finding]:
    """Checkpoints outside of the project; a project that lies there itself is a trial."""
    pipeline = facts.pipeline
    told = set()
    for query in pipeline.queries:
        folder = pipeline.checkpoint(query).local
        if folder is None or folder.is_relative_to(pipeline.folder):
            continue
        place = PurePosixPath(folder)
        why = next((text for root, text in _EMPTIED.items() if place.is_relative_to(root)), None)
        own = pipeline.queries[query].checkpoint is not None
        path = ("queries", query, "checkpoint") if own else ("defaults", "checkpoints")
        if why is None or path in told:
            continue
        told.add(path)
        yield CODE.warning(
            f"the checkpoint of '{query}' is in {'/'.join(place.parts[:3]).replace('//', '/')}",
            facts.places.value(*path),
            label="is emptied",
            why=f"{why}; the query then begins anew and writes again what it has written",
            fix="name a folder that stays, or leave it out: '.millstream/checkpoints' is beside the spec",
            query=query,
        )
