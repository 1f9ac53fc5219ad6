"""Each way in which a checkpoint's files are lost or torn, and what is said of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.integrity.corruption import find_damage
from millstream.checkpoint.integrity.repair import repair

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ID = "6a2b1c3d-0000-4000-8000-000000000001"
ABOUT = '{"batchWatermarkMs":0,"batchTimestampMs":1767268800123,"conf":{}}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
RECORD = {
    "query": "sums",
    "query_id": ID,
    "operators": [],
    "sources": [],
    "sinks": [],
    "output_mode": "append",
    "pinned": {},
    "unpinned": {},
    "versions": {},
}
# Batches 0 to 3 are planned, 0 to 2 committed; the state of the fourth is at version 3.
LAST = 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint that crashed in batch 3: a source of files, a source of Kafka, two partitions of state."""
    write_file(tmp_path / "metadata", json.dumps({"id": ID}))
    for number in range(LAST + 1):
        offsets = f'v1\n{ABOUT}\n{{"logOffset":{number}}}\n{{"clicks":{{"0":{number * 10}}}}}'
        write_file(tmp_path / "offsets" / str(number), offsets)
        write_file(tmp_path / "sources" / "0" / str(number), 'v1\n{"path":"a","timestamp":1,"batchId":0}')
        if number < LAST:
            write_file(tmp_path / "commits" / str(number), COMMIT)
            for part in "01":
                write_file(tmp_path / "state" / "0" / part / f"{number + 1}.delta", "bytes")
    write_file(tmp_path / "state/0/_metadata/metadata", 'v1\n{"stateStoreInfo":[{"numPartitions":2}]}')
    write_file(tmp_path / "_millstream" / "record.json", json.dumps(RECORD))
    return tmp_path


def write_file(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def torn(name: str, left: str = "") -> Callable[[Path], None]:
    return lambda folder: write_file(folder / name, left)


def both(*steps: Callable[[Path], None]) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        for step in steps:
            step(folder)

    return run


def commit_last_batch(folder: Path) -> None:
    """The last batch was committed too, with its state."""
    write_file(folder / "commits" / str(LAST), COMMIT)
    for part in "01":
        write_file(folder / "state" / "0" / part / f"{LAST + 1}.delta", "bytes")


def without_part(folder: Path) -> None:
    for file in (folder / "state/0/1").iterdir():
        file.unlink()
    (folder / "state/0/1").rmdir()


CASES = {
    "the id is gone": (remove("metadata"), "metadata is gone", True),
    "the id is truncated": (torn("metadata", '{"id":"6a2'), "metadata is truncated", True),
    "the id is empty": (torn("metadata"), "metadata is truncated", True),
    "id and record are gone": (
        both(remove("metadata"), remove("_millstream/record.json")),
        "metadata is gone",
        False,
    ),
    "the record is truncated": (torn("_millstream/record.json", "{"), "record.json is truncated", True),
    "the newest commit is empty": (torn("commits/2"), "commits/2 is empty", True),
    "the newest commit is truncated": (torn("commits/2", 'v1\n{"next'), "commits/2 is truncated", True),
    "the commit of the last batch is empty": (
        both(commit_last_batch, torn("commits/3")),
        "commits/3 is empty",
        True,
    ),
    "a commit that names state is truncated": (
        both(torn("commits/1", 'v2\n{"nextBatchWatermarkMs":0}'), torn("commits/2", "v2")),
        "commits/2 is truncated",
        False,
    ),
    "the newest offsets are empty": (torn("offsets/3"), "offsets/3 is empty", True),
    "the newest offsets hold zeros": (torn("offsets/3", "\0" * 40), "offsets/3 is empty", True),
    "the newest offsets are torn": (
        torn("offsets/3", f'v1\n{ABOUT}\n{{"logOf'),
        "offsets/3 is truncated",
        True,
    ),
    "offsets of a committed batch are torn": (
        both(commit_last_batch, torn("offsets/3", "v1")),
        "offsets/3 is truncated, and batch 3 was committed",
        False,
    ),
    "offsets of a committed batch are gone": (
        both(commit_last_batch, remove("offsets/3")),
        "offsets/3 is gone, and batch 3 was committed",
        False,
    ),
    "offsets before the newest are gone": (remove("offsets/2"), "offsets/2 is gone", False),
    "offsets before the newest are torn": (torn("offsets/2", "v1"), "offsets/2 is truncated", False),
    "one delta is gone": (remove("state/0/1/2.delta"), "2.delta is gone", False),
    "one delta is empty": (torn("state/0/0/3.delta"), "3.delta is empty", False),
    "the state of a partition is gone": (without_part, "state/0/1 is gone", False),
    "an entry of a file source is gone": (remove("sources/0/1"), "sources/0/1 is gone", False),
    "an entry of a file source is empty": (torn("sources/0/3"), "sources/0/3 is truncated", False),
}


@pytest.mark.parametrize(("break_it", "said", "mendable"), CASES.values(), ids=CASES)
def test_each_damage_is_named_with_its_file(
    folder: Path, break_it: Callable[[Path], None], said: str, mendable: bool
) -> None:
    break_it(folder)

    damages = find_damage(folder)

    assert said in damages[0].what
    assert damages[0].is_repairable is mendable
    assert damages[0].why
    assert damages[0].cure


@pytest.mark.parametrize(
    "break_it",
    [case[0] for case in CASES.values() if case[2]],
    ids=[name for name in CASES if CASES[name][2]],
)
def test_what_may_be_mended_is_sound_afterwards(folder: Path, break_it: Callable[[Path], None]) -> None:
    break_it(folder)

    for damage in find_damage(folder):
        repair(folder, damage)

    assert find_damage(folder) == []
    assert Checkpoint(folder).query_id() == ID


HARMLESS = {
    "nothing": lambda _: None,
    "the last batch is committed": commit_last_batch,
    "a commit is gone": remove("commits/2"),
    "an old commit is truncated": torn("commits/0"),
    "old offsets are gone": remove("offsets/0"),
    "old state is gone, and a snapshot is there": both(
        torn("state/0/0/2.snapshot", "x"), remove("state/0/0/1.delta"), remove("state/0/0/2.delta")
    ),
    "entries of a file source are compacted": both(
        torn("sources/0/2.compact", "v1\n"),
        remove("sources/0/0"),
        remove("sources/0/1"),
        remove("sources/0/2"),
    ),
    "a file half written by a crash": torn("offsets/.4.6f1c.tmp", "v1"),
}


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_what_spark_goes_on_with_is_no_damage(folder: Path, change: Callable[[Path], None]) -> None:
    change(folder)

    assert find_damage(folder) == []


def test_a_checkpoint_that_is_not_there_is_sound(tmp_path: Path) -> None:
    assert find_damage(tmp_path / "none") == []


def test_state_of_a_first_batch_whose_offsets_are_gone_is_set_aside_whole(tmp_path: Path) -> None:
    write_file(tmp_path / "metadata", json.dumps({"id": ID}))
    write_file(tmp_path / "offsets" / "0", "")
    write_file(tmp_path / "state" / "0" / "0" / "1.delta", "bytes")

    for _ in range(2):
        repair(tmp_path, find_damage(tmp_path)[0])

    assert find_damage(tmp_path) == []
    names = sorted(path.name for path in (tmp_path / "_millstream" / "aside").iterdir())
    assert names == ["offsets.0.1", "state.1"]


def test_a_torn_file_is_set_aside_with_the_sum_beside_it_gone(folder: Path) -> None:
    write_file(folder / "commits" / "2", "")
    write_file(folder / "commits" / ".2.crc", "crc")

    (path,) = repair(folder, find_damage(folder)[0])

    assert path.name == "commits.2.1"
    assert sorted(file.name for file in (folder / "commits").iterdir()) == ["0", "1"]


def test_where_the_first_batch_began_must_be_known_until_it_is_done(tmp_path: Path) -> None:
    write_file(tmp_path / "metadata", json.dumps({"id": ID}))
    write_file(tmp_path / "offsets" / "0", f'v1\n{ABOUT}\n{{"clicks":{{"0":10}}}}')

    assert [damage.what for damage in find_damage(tmp_path)] == [f"{tmp_path}/sources/0/0 is gone"]

    write_file(tmp_path / "commits" / "0", COMMIT)
    assert find_damage(tmp_path) == []


def test_stores_of_a_join_are_compared_with_each_other(folder: Path) -> None:
    for part in "01":
        for number in (1, 2, 3):
            (folder / "state" / "0" / part / f"{number}.delta").unlink()
            for side in ("left-keyToNumValues", "right-keyToNumValues"):
                write_file(folder / "state" / "0" / part / side / f"{number}.delta", "bytes")
    assert find_damage(folder) == []

    (folder / "state/0/1/right-keyToNumValues/3.delta").unlink()

    assert find_damage(folder)[0].what.endswith("state/0/1/right-keyToNumValues/3.delta is gone")


def test_partitions_that_the_newest_batch_does_not_have_are_no_damage(folder: Path) -> None:
    """Spark repartitions state to fewer partitions without deleting folders or changing the metadata."""
    write_file(folder / "state" / "0" / "2" / "1.delta", "bytes")
    write_file(folder / "state/0/_metadata/metadata", 'v1\n{"stateStoreInfo":[{"numPartitions":3}]}')
    newest = folder / "offsets" / str(LAST)

    newest.write_text(newest.read_text().replace('"conf":{}', '"conf":{"spark.sql.shuffle.partitions":"2"}'))
    assert find_damage(folder) == []

    newest.write_text(newest.read_text().replace('"2"}', '"3"}'))
    assert [damage.what for damage in find_damage(folder)] == [f"{folder}/state/0/2/2.delta is gone"]
