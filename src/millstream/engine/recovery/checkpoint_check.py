"""Check the checkpoints of a run for damage before Spark starts, and repair them if asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checkpoint import former_checkpoint
from millstream.checkpoint.integrity.corruption import find_damage
from millstream.checkpoint.integrity.damage_report import AFRESH
from millstream.checkpoint.integrity.repair import repair
from millstream.checkpoint.remote.path import RemotePath, relative_path
from millstream.diagnostics.failure import CheckpointError, CheckpointMismatch, NotReady

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millstream.checkpoint.integrity.corruption import CheckpointDamage
    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.connectors.api.writer import Writer
    from millstream.pipeline.model import Pipeline


def check_checkpoints(
    pipeline: Pipeline,
    queries: Sequence[str],
    *,
    repair: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Check each query's checkpoint. The caller has the locks. `say` receives a sentence for each completed repair.

    Raises `CheckpointError` for the first damage that is not repaired: what it is, its effect on the sinks, what to
    do.
    """
    for query in queries:
        folder = pipeline.checkpoint_folder(query)
        former = former_checkpoint.read(folder)
        if former is not None and former.is_pending:
            raise CheckpointError(
                f"'millstream plan --apply' was interrupted: query '{query}' has a new checkpoint, but the rows "
                f"in its sinks are not replaced yet",
                f"finish the replacement: 'millstream plan --apply --select {query}'; or add --past continue to "
                f"keep the rows",
            )
        # One repair may uncover further damage: torn offsets are checked before the state that they lead to.
        while damages := find_damage(folder):
            damage_found = damages[0]
            # Torn files are unknown on S3, and a repair that is suspended could later move the files of the next run.
            is_in_reach = not (isinstance(folder, RemotePath) and folder.is_object)
            if not (repair and damage_found.is_repairable and is_in_reach):
                raise _refusal(query, damages, is_in_reach=is_in_reach)
            for copy in _repair(folder, damage_found):
                say(
                    f"{query}: {relative_path(damage_found.file, folder)} is kept as {relative_path(copy, folder)}"
                )
            say(f"{query}: {damage_found.what}; done: {damage_found.cure}; {damage_found.why}")


def _repair(folder: CheckpointPath, damage_found: CheckpointDamage) -> list[CheckpointPath]:
    try:
        return repair(folder, damage_found)
    except OSError as error:
        raise NotReady(
            f"checkpoint folder {folder} cannot be repaired: {error.strerror}",
            "give this user permission to write to the folder",
        ) from error


def _refusal(query: str, damages: Sequence[CheckpointDamage], *, is_in_reach: bool) -> CheckpointError:
    first = damages[0]
    more = f" (and {len(damages) - 1} more)" if len(damages) > 1 else ""
    fix = (
        f"'millstream run --repair --select {query}' does this: {first.cure}"
        if first.is_repairable and is_in_reach
        else first.cure
    )
    return CheckpointError(
        f"the checkpoint of query '{query}' is damaged: {first.what}; {first.why}{more}", fix
    )


def check_unplanned_batches(query: str, writers: Mapping[str, Writer], planned: int | None) -> None:
    """Check that no sink has a batch that the checkpoint has not planned. Called with open writers at the start.

    Such a checkpoint was restored from an older copy, or lost its newest offsets. Planned again, the batch may have
    other rows, and the sink would skip all of them. Raises `CheckpointMismatch`.
    """
    next_batch = 0 if planned is None else planned + 1
    for name, writer in writers.items():
        if writer.has_batch(next_batch):
            raise CheckpointMismatch(
                f"sink '{name}' has batch {next_batch} of query '{query}', which is not in the checkpoint: the "
                f"checkpoint is older than the sink, so the sink would skip rows",
                f"restore the newest files in the folders offsets and commits of the checkpoint; {AFRESH}",
            )
