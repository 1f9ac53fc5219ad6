"""Checkpoints copied, moved and rewound: refused under a run, and whole after a kill at any file."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.lock import CheckpointLock
from millstream.checkpoint.operations import transfer
from millstream.checkpoint.operations.rewind import rewind_checkpoint
from millstream.checkpoint.operations.summary import summarize_checkpoint
from millstream.checkpoint.operations.transfer import copy_checkpoint, move_checkpoint
from millstream.checkpoint.replacement import list_backups
from millstream.diagnostics.failure import CheckpointError, InvalidInput, NotReady

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOLD = """
import sys, time
from pathlib import Path
from millstream.checkpoint.lock import CheckpointLock
with CheckpointLock(Path(sys.argv[1]), "shop.sums"):
    print("locked", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint of a file source with batches 0 to 4 and state of two partitions."""
    made = tmp_path / "checkpoints" / "sums"
    write(made / "metadata", json.dumps({"id": "one"}))
    for batch in range(5):
        header = json.dumps({"batchWatermarkMs": batch * 1000, "batchTimestampMs": 5, "conf": {"a": "b"}})
        write(made / "offsets" / str(batch), f'v1\n{header}\n{{"logOffset":{batch}}}')
        write(made / "offsets" / f".{batch}.crc", "crc")
        write(made / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":0}')
        write(made / "sources" / "0" / str(batch), 'v1\n{"path":"file:///in","timestamp":1,"batchId":0}')
        for partition in range(2):
            write(made / "state" / "0" / str(partition) / f"{batch + 1}.delta", "x")
    return made


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def content(folder: Path) -> dict[str, str]:
    """The files of a checkpoint but its lock."""
    return {
        str(file.relative_to(folder)): file.read_text()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "lock"
    }


@pytest.fixture
def running(folder: Path) -> Iterator[None]:
    """Another process with the lock of the checkpoint."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield
        process.kill()


def test_a_copy_has_every_file(folder: Path, tmp_path: Path) -> None:
    before = content(folder)

    copied = copy_checkpoint(folder, tmp_path / "elsewhere" / "sums")

    assert content(copied) == before == content(folder)


def test_a_copy_that_was_killed_is_made_again(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / ".backup.partial" / "metadata", "half")

    copied = copy_checkpoint(folder, tmp_path / "backup")

    assert content(copied) == content(folder)
    assert not (tmp_path / ".backup.partial").exists()


def test_a_moved_checkpoint_is_at_one_place(folder: Path, tmp_path: Path) -> None:
    before = content(folder)

    moved = move_checkpoint(folder, tmp_path / "new" / "totals")

    assert content(moved) == before
    assert not folder.exists()


def test_a_move_to_another_disk_that_fails_leaves_the_old_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(folder)

    def rename(*_: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    def copytree(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(folder), "rename", rename)
    monkeypatch.setattr(shutil, "copytree", copytree)

    with pytest.raises(Exception, match="No space left"):
        move_checkpoint(folder, tmp_path / "totals")

    assert content(folder) == before
    assert not (tmp_path / "totals").exists()


def test_state_that_names_its_files_by_their_path_is_not_moved(folder: Path, tmp_path: Path) -> None:
    write(folder / "state" / "0" / "_metadata" / "v2" / "0", f"v2\n{folder}/state/0/_stateSchema/default/0")

    with pytest.raises(CheckpointError, match="absolute path"):
        move_checkpoint(folder, tmp_path / "totals")

    assert folder.exists()


def test_a_copy_of_state_that_names_its_files_by_their_path_is_moved_back_to_the_original_folder_only(
    folder: Path, tmp_path: Path
) -> None:
    file = folder / "state" / "0" / "_metadata" / "v2" / "0"
    paths = [f"file:{folder}/state/0/_stateSchema/default/0"]
    write(file, "v2\n" + json.dumps({"stateStoreInfo": [{"stateSchemaFilePaths": paths}]}))
    before = content(folder)
    copied = copy_checkpoint(folder, tmp_path / "backup")
    shutil.rmtree(folder)

    with pytest.raises(CheckpointError, match="absolute path"):
        move_checkpoint(copied, folder.with_name("sums2"))
    moved = move_checkpoint(copied, folder)

    assert content(moved) == before
    assert not copied.exists()


@pytest.mark.usefixtures("running")
def test_nothing_is_done_under_a_run(folder: Path, tmp_path: Path) -> None:
    before = content(folder)

    for attempt in (
        lambda: copy_checkpoint(folder, tmp_path / "copy"),
        lambda: move_checkpoint(folder, tmp_path / "moved"),
        lambda: rewind_checkpoint(folder, 2),
    ):
        with pytest.raises(CheckpointError, match=r"held by 'shop\.sums'"):
            attempt()

    assert content(folder) == before


def test_an_existing_target_is_left_alone(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()

    with pytest.raises(InvalidInput, match="exists"):
        copy_checkpoint(folder, tmp_path / "there")


def test_a_move_to_another_disk_outlives_the_rest_of_a_killed_one_and_is_on_the_disk_first(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, flush = Path.rename, transfer.flush_path
    flushed: list[Path] = []

    def fail(path: Path, target: Path) -> Any:
        if path == folder and target.parent != folder.parent:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        if path == folder:
            assert {tmp_path, tmp_path / "new", tmp_path / "new" / "disk"} <= set(flushed)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    monkeypatch.setattr(transfer, "flush_path", lambda path: (flushed.append(path), flush(path)))
    write(folder.with_name(".sums.moved") / "metadata", "of an earlier move")
    before = content(folder)

    moved = move_checkpoint(folder, tmp_path / "new" / "disk" / "sums")

    assert content(moved) == before
    assert not folder.exists()


def test_a_rewound_checkpoint_continues_after_the_batch_and_keeps_what_it_was(folder: Path) -> None:
    before = content(folder)

    backup = rewind_checkpoint(folder, 2)

    assert (Checkpoint(folder).planned(), Checkpoint(folder).committed()) == (2, 2)
    assert not (folder / "offsets" / ".3.crc").exists()
    assert content(backup) == before
    assert list_backups(folder) == [backup]


def test_a_rewind_copies_the_files_of_a_file_system_that_cannot_link_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(file: str, _: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted", file)

    monkeypatch.setattr(os, "link", link)
    before = content(folder)

    backup = rewind_checkpoint(folder, 2)

    assert Checkpoint(folder).planned() == 2
    assert content(backup) == before


@pytest.mark.parametrize(
    "operation",
    [
        lambda folder: rewind_checkpoint(folder, 2),
        lambda folder: copy_checkpoint(folder, folder.parent / "copy"),
    ],
    ids=["rewind", "copy"],
)
def test_a_full_disk_is_the_error_of_one_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, operation: Callable[[Path], object]
) -> None:
    def fail(file: str, _: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", file)

    monkeypatch.setattr(os, "link", fail)
    monkeypatch.setattr(shutil, "copy2", fail)
    before = content(folder)

    with pytest.raises((OSError, NotReady)) as failed:
        operation(folder)

    error = failed.value if isinstance(failed.value, OSError) else failed.value.__cause__
    assert isinstance(error, OSError)
    assert (error.errno, str(error.filename).startswith(str(folder))) == (errno.ENOSPC, True)
    assert "None" not in str(failed.value)
    assert content(folder) == before


def test_a_rewind_finds_a_name_for_the_checkpoint_as_it_was_after_an_older_one_was_deleted(
    folder: Path,
) -> None:
    original = folder.with_name("original")
    shutil.copytree(folder, original)
    backups = []
    for _ in range(3):
        backups.append(rewind_checkpoint(folder, 2))
        shutil.rmtree(folder)
        shutil.copytree(original, folder)
        if len(backups) == 2:
            shutil.rmtree(backups[0])

    assert len(set(backups)) == 3
    assert content(backups[1]) == content(backups[2]) == content(original)


@pytest.mark.parametrize(
    "later",
    [
        "0/0/4.snapshot",
        "0/1/5.snapshot",
        "0/1/4_5e7f.changelog",
        "1/0/left-keyToNumValues/7.snapshot",
    ],
)
def test_a_rewound_checkpoint_has_no_state_of_the_batches_that_it_has_not(folder: Path, later: str) -> None:
    # Spark would load the newest snapshot up to the version that it needs, and it would be of the former batches.
    kept = [f"1/0/left-keyToNumValues/{version}.delta" for version in (1, 2, 3)]
    for file in (*kept, later):
        write(folder / "state" / file, "of the former batch")
    crc = Path(later).with_name(f".{Path(later).name}.crc")
    write(folder / "state" / crc, "crc")
    before = content(folder)

    backup = rewind_checkpoint(folder, 2)

    left = {name for name in content(folder) if name.startswith("state/")}
    versions = {f"state/0/{partition}/{version}.delta" for partition in range(2) for version in (1, 2, 3)}
    assert left == {*versions, *(f"state/{file}" for file in kept)}
    assert content(backup) == before


def test_a_batch_before_the_state_got_more_partitions_can_be_reached(folder: Path) -> None:
    offsets = folder / "offsets" / "2"
    offsets.write_text(offsets.read_text().replace('{"a": "b"}', '{"spark.sql.shuffle.partitions": "2"}'))
    write(folder / "state" / "0" / "2" / "5.delta", "x")

    rewind_checkpoint(folder, 2)

    assert Checkpoint(folder).committed() == 2


@pytest.mark.parametrize(
    ("lost", "batch", "reason"),
    [
        ("offsets/2", 2, "no longer has the file offsets/2"),
        ("state/0/1/3.delta", 2, "the state of batch 2 is gone"),
        ("", 4, "is not before the newest batch"),
        ("", 9, "is not before the newest batch"),
    ],
)
def test_a_batch_that_cannot_be_reached_is_refused(folder: Path, lost: str, batch: int, reason: str) -> None:
    if lost:
        (folder / lost).unlink()
    before = content(folder)

    with pytest.raises((CheckpointError, InvalidInput), match=reason):
        rewind_checkpoint(folder, batch)

    assert content(folder) == before


def test_a_summary_names_batches_sizes_and_the_owner(folder: Path) -> None:
    idle = summarize_checkpoint("sums", folder)
    with CheckpointLock(folder, "shop.sums"):
        owned = summarize_checkpoint("sums", folder)

    assert (idle.query_id, idle.oldest, idle.planned, idle.committed) == ("one", 0, 4, 4)
    assert idle.watermark == "1970-01-01T00:00:04Z"
    assert idle.sources == [{"source": "?", "offsets": {"logOffset": 4}}]
    assert idle.sizes["state"] == 10
    assert idle.owner is None
    assert owned.owner is not None
    assert f"process {os.getpid()}" in owned.owner
