"""A query has not run, but a removed query that wrote to the same sink has a checkpoint."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.metadata import QueryMetadata, read
from millstream.diagnostics.failure import CheckpointError
from millstream.pipeline.load.loader import display_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Compare each query that has not run yet with the checkpoints next to its own."""
    pipeline = facts.pipeline
    folders = {query: pipeline.checkpoint(query).local for query in pipeline.queries}
    for query, folder in folders.items():
        siblings = [] if folder is None else _list_siblings(folder)
        if folder is None or not siblings:
            continue
        mode = pipeline.queries[query].output_mode
        sinks = [
            entry.sink
            for entry in pipeline.queries[query].to
            if entry.sink.stores_rows and not entry.sink.is_rerun_idempotent(mode)
        ]
        for sibling in siblings:
            record = _read_used_metadata(sibling) if sibling not in folders.values() else None
            if record is None or record.query in pipeline.queries:
                continue
            sink = next(
                (
                    entry
                    for entry in sinks
                    if any(entry.matches_identity(target_record) for target_record in record.sinks)
                ),
                None,
            )
            if sink is None:
                continue
            old, new = (shlex.quote(str(display_path(path))) for path in (sibling, folder))
            move = f"{f'rm -r {new} && ' if folder.exists() else ''}mv {old} {new}"
            target = sink.describe().replace(f"{pipeline.folder}/", "")
            yield CODE.warning(
                f"query '{query}' may be '{record.query}' renamed: it has not run, and '{record.query}', which is "
                f"no longer in the spec, has written to the same {target}",
                facts.places.key("queries", query),
                label="starts from the beginning",
                why="a renamed query has a new checkpoint, so it reads its sources from the start and appends all "
                "rows again",
                fix=f"to continue as '{query}', run this while no run is active and no batch is spooled: {move}; "
                f"to start from the beginning, delete {old}",
                query=query,
            )


def _list_siblings(folder: Path) -> list[Path]:
    """Return what is next to the checkpoint of a query that has not run yet."""
    try:
        has_run = Checkpoint(folder).planned() is not None
        return [] if has_run or not folder.parent.is_dir() else sorted(folder.parent.iterdir())
    except PermissionError:
        # Checkpoints are closed to other users than that of the run, who may still check the spec.
        return []


def _read_used_metadata(folder: Path) -> QueryMetadata | None:
    """Read the metadata of a checkpoint that has committed a batch; `None` for others."""
    try:
        is_used = folder.is_dir() and Checkpoint(folder).committed() is not None
        return read(folder) if is_used else None
    except (CheckpointError, OSError):
        # A record that is damaged or not readable concerns its own query only.
        return None
