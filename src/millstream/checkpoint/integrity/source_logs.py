"""Check that the logs of sources in a checkpoint are complete for the next batch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.checkpoint.file_source_log import COMPACT
from millstream.checkpoint.integrity.damage_report import COPY, CheckpointDamage
from millstream.checkpoint.metadata import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.checkpoint.folder import Offsets
    from millstream.checkpoint.remote.path import CheckpointPath


def check_source_logs(
    folder: CheckpointPath, planned: Offsets, *, is_committed: bool
) -> Iterator[CheckpointDamage]:
    """Yield the damage of `sources/`, given the newest planned batch and whether it was committed."""
    record = read(folder)
    for index, text in enumerate(planned.sources):
        offset = json.loads(text) if text else None
        if not isinstance(offset, dict):
            continue
        log = folder / "sources" / str(record.log(index) if record else index)
        if "logOffset" in offset:
            yield from _check_file_log(log, int(offset["logOffset"]))
        elif (
            planned.batch_id == 0
            and not is_committed
            and all(isinstance(part, dict) for part in offset.values())
        ):
            yield from _check_start(log / "0")


def _check_file_log(log: CheckpointPath, newest: int) -> Iterator[CheckpointDamage]:
    """Check the entries since the last compacted one, which Spark reads to know the files it has processed."""
    names_found = {file.name for file in log.iterdir()} if log.is_dir() else set()
    compacted = [
        int(name.removesuffix(COMPACT))
        for name in names_found
        if name.endswith(COMPACT) and name.removesuffix(COMPACT).isdigit()
    ]
    first = max(compacted, default=-1)
    if first >= 0:
        names = [f"{first}{COMPACT}", *(str(number) for number in range(first + 1, newest + 1))]
    else:
        names = [str(number) for number in range(newest + 1)]
    for name in names:
        file = log / name
        state = (
            "is gone"
            if name not in names_found
            else None
            if file.read_bytes()[:1] == b"v"
            else "is truncated"
        )
        if state:
            yield CheckpointDamage(
                f"{file} {state}",
                file,
                "this log lists the files that were read; without it, files would be read again, or not at all",
                COPY,
            )
            return


def _check_start(file: CheckpointPath) -> Iterator[CheckpointDamage]:
    """Check where the first batch began, if that batch has yet to run."""
    if not file.exists() or not file.read_bytes().strip(b"\0 \n"):
        yield CheckpointDamage(
            f"{file} {'is empty' if file.exists() else 'is gone'}",
            file,
            "the first batch is not finished, and no other file says where it began, so a repetition could read "
            "different rows",
            COPY,
        )
