"""A process killed at any change on the disk leaves the old checkpoint or the new one, and never half of one."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections import defaultdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.checkpoint import former_checkpoint
from millstream.checkpoint.former_checkpoint import FormerCheckpoint
from millstream.checkpoint.integrity.corruption import find_damage
from millstream.checkpoint.lock import CheckpointLock
from millstream.checkpoint.operations.rewind import rewind_checkpoint
from millstream.checkpoint.operations.transfer import copy_checkpoint, copy_files, move_checkpoint
from millstream.checkpoint.replacement import list_backups, prepare_folder, replace_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

_CHANGES = {"os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "shutil.copyfile"}
_KILLED = 9


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint with batches 0 to 3 and state."""
    folder = tmp_path / "checkpoints" / "sums"
    header = json.dumps({"batchWatermarkMs": 1000, "batchTimestampMs": 5, "conf": {}})
    files = {"metadata": json.dumps({"id": "one"}), "_millstream/adopted.json": "[]"}
    for batch in range(4):
        files[f"offsets/{batch}"] = f'v1\n{header}\n{{"logOffset":{batch}}}'
        files[f"commits/{batch}"] = 'v1\n{"nextBatchWatermarkMs":0}'
        files[f"sources/0/{batch}"] = 'v1\n{"path":"file:///in","timestamp":1,"batchId":0}'
        files[f"state/0/0/{batch + 1}.delta"] = "x"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def read(folder: Path) -> dict[str, str] | None:
    """The files of a checkpoint but its lock; None for a folder that does not exist."""
    if not folder.exists():
        return None
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {str(file.relative_to(folder)): file.read_text() for file in files}


def kill_at_each_change(folder: Path, action: Callable[[], object]) -> Iterator[int]:
    """Yield after the action was killed at its first change on the disk, its second and so on, each time anew.

    Ends after the first process that was not killed. The folder around the checkpoint is restored in between.
    """
    original = folder.parent.with_name("original")
    shutil.copytree(folder.parent, original)
    for number in count():
        shutil.rmtree(folder.parent)
        shutil.copytree(original, folder.parent)
        process = os.fork()
        if not process:
            _act(action, number)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        assert status in (0, _KILLED)
        yield number
        if status == 0:
            return


def _act(action: Callable[[], object], number: int) -> None:
    """Act and end this process, at the latest at the change with this number. Opening a file to write counts."""
    changes = 0

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal changes
        is_write = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        if event in _CHANGES or is_write:
            if changes == number:
                os._exit(_KILLED)
            changes += 1

    # A kill loses nothing that was written; only a power cut does.
    os.fsync = lambda _: None  # type: ignore[assignment]
    sys.addaudithook(hook)
    status = 1
    try:
        action()
        status = 0
    finally:
        os._exit(status)


def rename_on_one_disk(path: Path, target: Path, *, rename: Any = Path.rename) -> Path:
    """Rename as between two file systems: not into another folder."""
    if path.parent != target.parent:
        raise OSError(errno.EXDEV, "Invalid cross-device link")
    moved: Path = rename(path, target)
    return moved


def test_a_killed_rewind_leaves_the_checkpoint_as_it_was_or_rewound(folder: Path) -> None:
    before = read(folder)
    assert before is not None
    # Batch N leaves version N + 1 of the state.
    gone = defaultdict(tuple, offsets=("2", "3"), commits=("2", "3"), state=("3", "4"))
    rewound = {
        name: text
        for name, text in before.items()
        if "sources" in name or name.rpartition("/")[2].partition(".")[0] not in gone[name.partition("/")[0]]
    } | {"_millstream/rewinds": "1"}

    outcomes = []
    for _ in kill_at_each_change(folder, lambda: rewind_checkpoint(folder, 1)):
        with CheckpointLock(folder, "next run"):
            outcomes.append(read(folder))
        assert outcomes[-1] in (before, rewound)
        assert find_damage(folder) == []
        assert all(read(backup) == before for backup in list_backups(folder))
    assert (outcomes[0], outcomes[-1]) == (before, rewound)


def test_a_killed_replacement_leaves_the_old_checkpoint_or_the_prepared_one(folder: Path) -> None:
    before = read(folder)

    def replace() -> None:
        with CheckpointLock(folder, "plan"):
            prepared = prepare_folder(folder)
            copy_files(folder, prepared)
            (prepared / "metadata").write_text('{"id": "two"}')
            replace_checkpoint(folder, prepared, folder.with_name(".sums.before-renewal-1"))

    outcomes = []
    for _ in kill_at_each_change(folder, replace):
        with CheckpointLock(folder, "next run"):
            outcomes.append(read(folder))
        assert outcomes[-1] in (before, {**(before or {}), "metadata": '{"id": "two"}'})
        assert all(read(backup) == before for backup in list_backups(folder))
    assert outcomes[0] != outcomes[-1]


def test_a_killed_copy_leaves_the_source_and_a_whole_target_or_none(folder: Path) -> None:
    before, target = read(folder), folder.with_name("copy")

    copies = []
    for _ in kill_at_each_change(folder, lambda: copy_checkpoint(folder, target)):
        copies.append(read(target))
        assert read(folder) == before
        assert copies[-1] in (None, before)
    assert (copies[0], copies[-1]) == (None, before)


@pytest.mark.parametrize("is_one_disk", [True, False])
def test_a_killed_move_leaves_the_checkpoint_at_one_of_its_places(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_one_disk: bool
) -> None:
    before, target = read(folder), folder.parent / "elsewhere" / "totals"
    if not is_one_disk:
        monkeypatch.setattr(Path, "rename", rename_on_one_disk)

    places = []
    for _ in kill_at_each_change(folder, lambda: move_checkpoint(folder, target)):
        places.append((read(folder), read(target)))
        assert places[-1] in ((before, None), (None, before), (before, before))
    assert (places[0], places[-1]) == ((before, None), (None, before))


def test_a_killed_move_leaves_a_checkpoint_that_finds_its_former_one(folder: Path) -> None:
    target = folder.parent / "elsewhere" / "totals"
    former = FormerCheckpoint(".sums.before-renewal-1", "one", 3, 0, "backfill", is_pending=True)
    backup = folder.with_name(former.folder)
    copy_files(folder, backup)
    former_checkpoint.write(folder, former)

    for _ in kill_at_each_change(folder, lambda: move_checkpoint(folder, target)):
        place = target if target.exists() else folder
        found = former_checkpoint.read(place)
        assert found is not None
        assert found.is_pending
        assert former_checkpoint.locate(place, found).resolve() == backup.resolve()
    assert target.exists()
