"""Refuse a start, a replay or a backfill that would conflict with spooled batches."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from millstream.checkpoint.folder import Checkpoint
from millstream.diagnostics.failure import CheckpointError, CheckpointMismatch
from millstream.engine.delivery.batch_spool import find_spools, list_orphaned_batches, list_spooled_batches
from millstream.engine.sink_keys import sink_keys
from millstream.pipeline.model import OnError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.engine.delivery.batch_spool import SpooledBatch
    from millstream.engine.events.event_bus import EventBus
    from millstream.pipeline.model import Pipeline


def check_start(pipeline: Pipeline, queries: Sequence[str]) -> None:
    """Raise `CheckpointMismatch` if a run of these queries would write past a spooled batch. Needs no Spark.

    A run delivers, in order, the batches that are spooled for its own checkpoint and for sinks with `on_error:
    dead_letter`. Any other writer would commit later batches, and the sink would then take the spooled ones for older
    ones that it already has. The caller has the checkpoints' locks.
    """
    for query in queries:
        for shelf in find_spools(pipeline, query):
            if batches := shelf.batches():
                _require_deliverable(pipeline, batches)


def _require_deliverable(pipeline: Pipeline, batches: Sequence[SpooledBatch]) -> None:
    first = batches[0]
    folder = pipeline.checkpoint_folder(first.query)
    current_id = Checkpoint(folder).query_id()
    keys = sink_keys(pipeline, first.query)
    if first.sink not in keys:
        raise missing_sink_error(pipeline, batches)
    entry = pipeline.queries[first.query].to[keys.index(first.sink)]
    message = describe_batches(batches)
    if entry.on_error is not OnError.DEAD_LETTER:
        raise CheckpointMismatch(
            f"{message}, which no longer has 'on_error: dead_letter', so newer batches would be written before "
            f"the spooled ones",
            f"deliver them first: {_replay_command(first)}",
        )
    if first.query_id != current_id:
        raise CheckpointMismatch(
            f"{message} from another checkpoint (id {first.query_id}): rows that this checkpoint reads again would "
            "be written twice once the spooled batches are delivered",
            f"deliver them first: {_replay_command(first)}; or delete them for good: {_delete_command(first)}",
        )


def require_none_spooled(pipeline: Pipeline, queries: Sequence[str], consequence: str) -> None:
    """Raise `CheckpointError` if batches of these queries wait for a sink. Needs no Spark."""
    if waiting := list_spooled_batches(pipeline, queries):
        first = waiting[0]
        raise CheckpointError(
            f"{len(waiting)} spooled batches of query '{first.query}' for {first.sink} {consequence}",
            f"deliver them first: {_replay_command(first)}; or delete them for good: {_delete_command(first)}",
        )


def check_new_id(pipeline: Pipeline, query: str) -> None:
    """Raise `CheckpointMismatch` if batches are spooled under the id of a checkpoint that is to get another id."""
    if batches := [batch for shelf in find_spools(pipeline, query) for batch in shelf.batches()]:
        first = batches[0]
        raise CheckpointMismatch(
            f"{describe_batches(batches)} under the id of its checkpoint, and --adopt would give the checkpoint "
            f"another id, so newer batches would be written before the spooled ones",
            f"deliver them first: {_replay_command(first)}; or delete them for good: "
            f"'millstream deadletter delete {query}'",
        )


def check_replay(pipeline: Pipeline, batches: Iterable[SpooledBatch]) -> None:
    """Raise `CheckpointMismatch` if the spec lacks the sink of one of these batches. Needs no Spark."""
    for batch in batches:
        if batch.sink not in sink_keys(pipeline, batch.query):
            raise missing_sink_error(pipeline, [batch])


def missing_sink_error(pipeline: Pipeline, batches: Sequence[SpooledBatch]) -> CheckpointMismatch:
    """Return the error for batches that cannot be delivered because their sink is no longer in the spec."""
    first = batches[0]
    return CheckpointMismatch(
        f"{describe_batches(batches)}, which the spec does not have; it has "
        f"{', '.join(sink_keys(pipeline, first.query))}",
        f"put the sink back into the spec, deliver them ({_replay_command(first)}), and then remove or rename it; "
        f"or delete them for good: {_delete_command(first)}",
    )


def check_backfill(pipeline: Pipeline, query: str, sink: str) -> None:
    """Raise `CheckpointError` if batches are spooled for a sink that a backfill would write. Needs no Spark.

    The recomputed result has their rows and the sink does not, so a backfill and the delivery would each add them.
    """
    batches = list_undelivered(pipeline, query, sink)
    if batches:
        raise CheckpointError(
            f"{describe_batches(batches)}: a backfill would write their rows, and the later delivery would write "
            f"the same rows again",
            f"deliver them first: {_replay_command(batches[0])}",
        )


def list_undelivered(pipeline: Pipeline, query: str, sink: str) -> list[SpooledBatch]:
    """List the batches that are spooled for one sink of a query, from any checkpoint."""
    return [
        batch for shelf in find_spools(pipeline, query) for batch in shelf.batches() if batch.sink == sink
    ]


def warn_of_spooled(pipeline: Pipeline, queries: Sequence[str], events: EventBus) -> None:
    """Emit a warning for each query that ends a run with spooled batches, which no other event of its end names."""
    for query in queries:
        # A file system that is away has been reported by the query.
        with suppress(OSError):
            if batches := [batch for shelf in find_spools(pipeline, query) for batch in shelf.batches()]:
                events.emit(
                    "warning",
                    query,
                    what=f"the run ends while {describe_batches(batches)}",
                    fix="start the next run, which delivers them, or deliver them now: "
                    f"{_replay_command(batches[0])}",
                )


def orphan_warnings(pipeline: Pipeline) -> list[str]:
    """Return one sentence for each checkpoint that no query of the spec has, but that has spooled batches."""
    by_checkpoint: dict[tuple[str, CheckpointPath], list[SpooledBatch]] = {}
    for batch in list_orphaned_batches(pipeline):
        by_checkpoint.setdefault((batch.query, batch.checkpoint), []).append(batch)
    return [
        _describe_orphans(query, checkpoint, batches, is_in_spec=query in pipeline.queries)
        for (query, checkpoint), batches in by_checkpoint.items()
    ]


def _describe_orphans(
    query: str, checkpoint: CheckpointPath, batches: Sequence[SpooledBatch], *, is_in_spec: bool
) -> str:
    described, command = describe_batches(batches), _replay_command(batches[0])
    if not is_in_spec:
        return (
            f"{described}; this spec does not have the query: put it back and deliver them ({command}), or delete "
            f"them for good ('millstream deadletter delete {query}')"
        )
    if not checkpoint.is_dir():
        return (
            f"{described} in {batches[0].folder.parent}, and their checkpoint is gone: restore it and deliver them "
            f"({command}), or delete that folder"
        )
    return (
        f"{described} with checkpoint {checkpoint}, which this spec does not name: if no other spec does, set "
        f"queries.{query}.checkpoint to it and deliver them ({command})"
    )


def describe_batches(batches: Sequence[SpooledBatch]) -> str:
    """Describe spooled batches, such as `2 batches of query 'copy' wait for sink 'delta:out'`."""
    first = batches[0]
    sinks = " and ".join(dict.fromkeys(f"'{batch.sink}'" for batch in batches))
    count = "1 batch" if len(batches) == 1 else f"{len(batches)} batches"
    verb = "waits" if len(batches) == 1 else "wait"
    return f"{count} of query '{first.query}' {verb} for sink {sinks}"


def _replay_command(batch: SpooledBatch) -> str:
    return f"'millstream deadletter replay {batch.query}'"


def _delete_command(batch: SpooledBatch) -> str:
    return f"'millstream deadletter delete {batch.query} --sink {batch.sink}'"
