"""Find the checkpoint that a query had under a former name, or in a former folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checkpoint import metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.remote.path import list_folder
from millstream.checkpoint.replacement import finish_replacements
from millstream.diagnostics.failure import CheckpointError
from millstream.engine.sink_keys import sink_keys
from millstream.plan.declared_query import declare_without_plan
from millstream.plan.query_plan import plan_query

if TYPE_CHECKING:
    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.pipeline.model import Pipeline


def find_former_folder(pipeline: Pipeline, query: str) -> tuple[CheckpointPath, str] | None:
    """Return the only folder from which a query without a checkpoint would continue, and the query's name there.

    None if the query has a checkpoint, or if no folder next to it, or several, was written by the same query under a
    name that the spec no longer has.
    """
    own, parent = pipeline.checkpoint_folder(query), pipeline.checkpoints_folder
    if not parent.is_dir() or Checkpoint(own).planned() is not None:
        return None
    # A replacement that was killed may have left a checkpoint under its backup's name.
    finish_replacements(parent)
    used = {pipeline.checkpoint_folder(name) for name in pipeline.queries}
    candidates = []
    for folder in list_folder(parent):
        if folder in used or folder.name.startswith(("_", ".")) or not (folder / "metadata").is_file():
            continue
        name = _continues_as(pipeline, query, folder)
        if name is not None:
            candidates.append((folder, name))
    return candidates[0] if len(candidates) == 1 else None


def _continues_as(pipeline: Pipeline, query: str, folder: CheckpointPath) -> str | None:
    """Return the former name of a query that would continue from a checkpoint; None if it would not."""
    try:
        record = metadata.read(folder)
    except CheckpointError:
        return None
    if record is None or (record.query != query and record.query in pipeline.queries):
        return None
    keys = sink_keys(pipeline, query)
    if not any(record.sink(key) for key in keys):
        # Another query of the same rows. What it has read is in none of this query's sinks.
        return None
    now = declare_without_plan(pipeline, query, keys, record)
    return record.query if plan_query(query, str(folder), record, now).verdict.can_continue else None
