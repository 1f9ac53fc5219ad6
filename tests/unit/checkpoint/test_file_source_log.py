"""Which files a batch of a file source read. The logs below are as Spark 4.2 writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from millstream.checkpoint.file_source_log import list_batch_files
from millstream.checkpoint.folder import Checkpoint
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path


def entry(folder: Path, name: str, *read: tuple[str, int]) -> None:
    """One file of the log: which paths, and the entry that each belongs to."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": path, "timestamp": 1, "batchId": number}) for path, number in read]
    (folder / name).write_text("\n".join(["v1", *lines]))


def test_a_batch_read_the_files_of_its_entries(tmp_path: Path) -> None:
    for number in range(3):
        entry(tmp_path, str(number), (f"file:///in/{number}.json", number))

    assert list_batch_files(tmp_path, 0, 2) == ("file:///in/1.json", "file:///in/2.json")


def test_a_compacted_entry_gives_only_its_own_files(tmp_path: Path) -> None:
    entry(tmp_path, "9.compact", *((f"file:///in/{number}.json", number) for number in range(10)))

    assert list_batch_files(tmp_path, 8, 9) == ("file:///in/9.json",)


def test_an_entry_that_was_compacted_away_is_found_in_the_compacted_one(tmp_path: Path) -> None:
    entry(tmp_path, "9.compact", *((f"file:///in/{number}.json", number) for number in range(10)))

    assert list_batch_files(tmp_path, 2, 4) == ("file:///in/3.json", "file:///in/4.json")


def test_an_entry_that_is_nowhere_is_named(tmp_path: Path) -> None:
    entry(tmp_path, "0", ("file:///in/0.json", 0))

    with pytest.raises(CheckpointError, match="entry 3"):
        list_batch_files(tmp_path, 2, 3)


def test_the_first_batch_begins_before_the_first_entry(tmp_path: Path) -> None:
    entry(tmp_path / "sources" / "0", "0", ("file:///in/0.json", 0))

    assert Checkpoint(tmp_path).files(0, None, '{"logOffset":0}') == ("file:///in/0.json",)


def test_offsets_of_another_source_are_no_files(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path).files(0, None, '{"clicks":{"0":5}}') == ()


def test_the_files_up_to_an_offset_have_their_time_of_change(tmp_path: Path) -> None:
    for number in range(3):
        entry(tmp_path / "sources" / "0", str(number), (f"file:///in/{number}.json", number))

    read = Checkpoint(tmp_path).read_files(0, '{"logOffset":1}')

    assert read == (("file:///in/0.json", 1), ("file:///in/1.json", 1))
