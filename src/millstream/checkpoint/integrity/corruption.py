"""Find truncated, empty or missing files in a checkpoint folder before Spark fails on them or reads wrong data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.integrity.damage_report import COPY, CheckpointDamage
from millstream.checkpoint.integrity.source_logs import check_source_logs
from millstream.checkpoint.integrity.state_stores import check_state_stores
from millstream.checkpoint.metadata import read as read_record
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.checkpoint.remote.path import CheckpointPath

__all__ = ["CheckpointDamage", "find_damage"]

# Spark reads the newest file of each log, and the one before in `offsets/`. Older ones are history.
_FILES_READ = 2


@dataclass(frozen=True)
class _Logs:
    """The numbers in `offsets/` and `commits/`, and which of the files that Spark reads are truncated."""

    folder: CheckpointPath
    planned: tuple[int, ...]
    committed: tuple[int, ...]

    @classmethod
    def of(cls, folder: CheckpointPath) -> _Logs:
        return cls(folder, _list_numbers(folder / "offsets"), _list_numbers(folder / "commits"))

    def describe_damage(self, log: str, number: int) -> str | None:
        """Describe what is wrong with one file of a log, or return None."""
        return _describe_damage(self.folder / log / str(number), lines=2)


def find_damage(folder: CheckpointPath) -> list[CheckpointDamage]:
    """List the damage of a checkpoint, the gravest first. Empty for a sound one and for one that does not exist.

    Reads files only, and only those that Spark reads at a start. The files of a state store are not opened, but each
    must exist and not be empty.
    """
    if not folder.is_dir():
        return []
    logs = _Logs.of(folder)
    damages = [
        *_check_metadata(logs),
        *_check_commits(logs),
        *_check_offsets(logs),
        *_check_unplanned_state(logs),
        *_check_record(folder),
    ]
    if not damages and logs.planned:
        planned = Checkpoint(folder).offsets(logs.planned[-1])
        assert planned is not None, "its file was read just before"
        is_committed = bool(logs.committed) and logs.committed[-1] == logs.planned[-1]
        damages += check_source_logs(folder, planned, is_committed=is_committed)
        version = logs.planned[-1] + int(is_committed)
        damages += check_state_stores(folder, version, planned.state_partitions)
    return damages


def _check_metadata(logs: _Logs) -> Iterator[CheckpointDamage]:
    """Check the query's id, which may be missing or unreadable."""
    file = logs.folder / "metadata"
    has_begun = bool(logs.planned or logs.committed)
    try:
        is_missing = Checkpoint(logs.folder).query_id() is None
    except CheckpointError:
        is_missing = False
    else:
        if not (is_missing and has_begun):
            return
    state = "is gone" if is_missing else "is truncated: it does not contain a query's id"
    recorded_id = _recorded_id(logs.folder)
    if not has_begun and recorded_id is None:
        yield CheckpointDamage(
            f"{file} {state}",
            file,
            "no batch was ever planned with this checkpoint, so no sink has rows under the old id",
            "create a new id",
            moved_files=(file,),
        )
    elif recorded_id is not None:
        yield CheckpointDamage(
            f"{file} {state}",
            file,
            "the sinks identify the query by this id; with another id, they would accept rows that they already "
            "have",
            f"write the file again with the id in _millstream/record.json, {recorded_id}",
            moved_files=() if is_missing else (file,),
            new_text=json.dumps({"id": recorded_id}, separators=(",", ":")),
        )
    else:
        yield CheckpointDamage(
            f"{file} {state}",
            file,
            "the sinks identify the query by this id, and no other file of the checkpoint contains it",
            COPY,
        )


def _recorded_id(folder: CheckpointPath) -> str | None:
    """Return the id in the record of the last start."""
    try:
        recorded = read_record(folder)
    except CheckpointError:
        return None
    return recorded.query_id if recorded else None


def _check_commits(logs: _Logs) -> Iterator[CheckpointDamage]:
    """Check the newest commit, which may be truncated, or of a batch whose offsets are missing."""
    if not logs.committed:
        return
    newest = logs.committed[-1]
    file = logs.folder / "commits" / str(newest)
    last = logs.planned[-1] if logs.planned else None
    if last is None or last < newest:
        missing_offsets = logs.folder / "offsets" / str(newest)
        yield CheckpointDamage(
            f"{missing_offsets} is gone, and batch {newest} was committed",
            missing_offsets,
            "Spark would plan this batch again with different rows, and sinks that already have the batch would "
            "skip these rows",
            COPY,
        )
        return
    state = logs.describe_damage("commits", newest)
    if state is None:
        return
    # State under commits of version 2 is found by names in the commit before.
    is_needed = newest < last and any(
        (logs.folder / "commits" / str(number)).read_text().startswith("v2")
        for number in logs.committed[-_FILES_READ:-1]
    )
    if is_needed:
        yield CheckpointDamage(
            f"{file} {state}", file, "this file names the state with which the next batch continues", COPY
        )
        return
    effect = (
        f"batch {newest} runs again over the same rows, and sinks that have it skip it"
        if newest == last
        else f"batch {newest} had ended before batch {last} was planned, so no row is read again for it"
    )
    yield CheckpointDamage(
        f"{file} {state}", file, effect, "move the file to another folder", moved_files=(file,)
    )


def _check_offsets(logs: _Logs) -> Iterator[CheckpointDamage]:
    """Check the newest offsets and those before, which may be truncated or missing."""
    if not logs.planned:
        return
    newest = logs.planned[-1]
    file = logs.folder / "offsets" / str(newest)
    is_committed = bool(logs.committed) and logs.committed[-1] >= newest
    state = logs.describe_damage("offsets", newest)
    if state is not None and is_committed:
        yield CheckpointDamage(
            f"{file} {state}, and batch {newest} was committed",
            file,
            "no other file says where the next batch begins, so rows would be lost or written twice",
            COPY,
        )
    elif state is not None:
        yield CheckpointDamage(
            f"{file} {state}",
            file,
            f"Spark plans batch {newest} again, perhaps with more rows; if a sink already has this batch, the run "
            f"does not start",
            "move the file to another folder",
            moved_files=(file,),
        )
    if newest == 0:
        return
    previous = logs.folder / "offsets" / str(newest - 1)
    state = logs.describe_damage("offsets", newest - 1) if newest - 1 in logs.planned else "is gone"
    if state is not None:
        yield CheckpointDamage(
            f"{previous} {state}",
            previous,
            f"batch {newest} begins where that batch ended, so Spark does not start without this file",
            COPY,
        )


def _check_unplanned_state(logs: _Logs) -> Iterator[CheckpointDamage]:
    """Check for state of a batch whose offsets are missing, if no batch was ever committed."""
    state = logs.folder / "state"
    if logs.planned or logs.committed or not state.is_dir() or not any(state.iterdir()):
        return
    yield CheckpointDamage(
        f"{state} contains state, and no batch was planned",
        state,
        "the first batch wrote this state but never ended, and Spark does not start with it; Spark then plans "
        "batch 0 again",
        "move the folder elsewhere",
        moved_files=(state,),
    )


def _check_record(folder: CheckpointPath) -> Iterator[CheckpointDamage]:
    """Check the project's own record of what wrote the checkpoint."""
    try:
        read_record(folder)
    except CheckpointError:
        file = folder / "_millstream" / "record.json"
        yield CheckpointDamage(
            f"{file} is truncated",
            file,
            "no sink is affected, but changes of the pipeline since the last start cannot be detected",
            "move the file to another folder; the next start writes it again",
            moved_files=(file,),
        )


def _list_numbers(folder: CheckpointPath) -> tuple[int, ...]:
    if not folder.is_dir():
        return ()
    return tuple(sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit()))


def _describe_damage(file: CheckpointPath, *, lines: int) -> str | None:
    """Describe what is wrong with a file of a version line and at least one line of JSON, or return None."""
    raw = file.read_bytes()
    if not raw.strip(b"\0 \n"):
        return "is empty"
    text = raw.decode(errors="replace").splitlines()
    if len(text) < lines or text[0] not in ("v1", "v2", "v3"):
        return "is truncated"
    try:
        # Continuous processing writes no metadata with its offsets: that line exists and is empty.
        json.loads(text[1] if text[1] or len(text) == lines else "{}")
        for line in text[2:]:
            # v2 writes `name:{…}`. A source without rows is a dash.
            offset = line.partition(":")[2] if text[0] != "v1" else line
            if offset != "-":
                json.loads(offset)
    except ValueError:
        return "is truncated"
    return None
