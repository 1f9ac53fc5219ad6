"""Dead letters in a Delta table that stays small: no row is lost or doubled, and what is deleted is gone."""

from __future__ import annotations

import os
import string
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from delta_letters import files_with, keep, log_entries, read_batches, writer_of
from millstream.connectors.api.values.dead_letter_rows import SCHEMA
from millstream.connectors.delta.commit import maintenance, sink_maintenance
from millstream.connectors.delta.commit.maintenance import TableMaintenance, merge_small_files
from millstream.connectors.delta.commit.sink_maintenance import SinkMaintenance
from millstream.connectors.delta.dead_letter_table import purge, read_rows
from millstream.connectors.delta.dead_letters import DeltaDeadLetterStore
from millstream.connectors.delta.sink import DeltaSink
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

INTERVAL, MOST_SMALL = 10, 5
LONG_AGO = time.time() - 10 * 86_400


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maintain after each ten versions."""
    monkeypatch.setattr(maintenance, "INTERVAL", INTERVAL)
    monkeypatch.setattr(maintenance, "MOST_SMALL", MOST_SMALL)
    monkeypatch.setattr(maintenance, "DELETION_INTERVAL", 0.0)


@pytest.fixture
def without_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables be created whose old versions are deleted at once."""
    properties = dict.fromkeys(maintenance.SHORT_HISTORY, "interval 0 seconds")
    monkeypatch.setattr("millstream.connectors.delta.dead_letter_writer.PROPERTIES", properties)


@pytest.mark.usefixtures("without_history")
def test_files_and_log_entries_do_not_grow_with_the_number_of_batches(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    sizes = []
    for batch in range(61):
        keep(writer, batch)
        if batch % 20 == 0:
            sizes.append((len(list(tmp_path.glob("part-*"))), len(log_entries(tmp_path))))

    assert max(sizes[1:]) <= (2 * INTERVAL, 2 * INTERVAL + 2)
    assert read_batches(tmp_path) == list(range(61))
    # A new start of the query knows the last batch from the checkpoint of the log alone.
    keep(writer_of(tmp_path), 60)
    assert read_batches(tmp_path) == list(range(61))


def test_readers_of_the_versions_of_the_last_hour_find_their_files_and_log(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    for batch in range(INTERVAL):
        keep(writer, batch)
    reader = DeltaTable(tmp_path)
    # Its files are old; they are removed from the table now.
    for file in tmp_path.glob("part-*"):
        os.utime(file, (LONG_AGO, LONG_AGO))
    keep(writer, INTERVAL)

    assert len(DeltaTable(tmp_path).file_uris()) == 1
    assert reader.to_pyarrow_table().num_rows == INTERVAL
    assert DeltaTable(tmp_path, version=3).to_pyarrow_table().num_rows == 4


def test_a_listing_or_resend_that_has_begun_goes_on_to_its_last_record(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    for batch in range(INTERVAL):
        keep(writer, batch)
    for file in tmp_path.glob("part-*"):
        os.utime(file, (LONG_AGO, LONG_AGO))
    letters = read_rows(Location(tmp_path))
    first = next(letters)
    keep(writer, INTERVAL)

    assert len(DeltaTable(tmp_path).file_uris()) == 1
    assert sorted(letter.batch_id for letter in (first, *letters)) == list(range(INTERVAL))


def test_a_table_of_an_earlier_version_gets_a_short_history_unless_it_has_one(tmp_path: Path) -> None:
    given = {"delta.logRetentionDuration": "interval 3 days"}
    rows = pa.Table.from_pylist([], schema=SCHEMA)
    write_deltalake(tmp_path, rows, configuration=given)
    writer = writer_of(tmp_path)
    for batch in range(INTERVAL):
        keep(writer, batch)

    assert DeltaTable(tmp_path).metadata().configuration == {**maintenance.SHORT_HISTORY, **given}


def test_old_files_in_no_log_entry_are_deleted_and_nothing_else(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    for batch in range(INTERVAL):
        keep(writer, batch)
    abandoned = tmp_path / "part-00000-abandoned-c000.snappy.parquet"
    others = [
        tmp_path / "part-00000-written-now-c000.snappy.parquet",
        tmp_path / "README.md",
        tmp_path / "nested" / "part-00000-other-table-c000.snappy.parquet",
        tmp_path / "_deletions" / "part-00000-deletions-c000.snappy.parquet",
    ]
    for file in (abandoned, *others):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"x")
    for file in (abandoned, *others[1:]):
        os.utime(file, (LONG_AGO, LONG_AGO))
    keep(writer, INTERVAL)

    assert not abandoned.exists()
    assert [file for file in others if not file.exists()] == []


@pytest.mark.parametrize("is_merged", [False, True], ids=["before a merge", "after a merge"])
def test_what_is_deleted_is_in_no_file(tmp_path: Path, is_merged: bool) -> None:
    # Snappy would replace four characters that occur twice, so that a file does not contain the text.
    text = (string.ascii_letters + string.digits).encode()
    writer = writer_of(tmp_path)
    for batch in range(INTERVAL + is_merged):
        keep(writer, batch, value=text)
    # A process was killed between the file of a merge and its commit.
    (tmp_path / "part-00000-killed-c000.snappy.parquet").write_bytes(text)
    assert len(files_with(tmp_path, text)) > INTERVAL

    purge(Location(tmp_path), None, "orders")

    assert files_with(tmp_path, text) == []
    keep(writer, 0)
    keep(writer, INTERVAL + 1)
    assert read_batches(tmp_path) == [INTERVAL + 1]


def test_a_merge_that_began_before_a_deletion_brings_nothing_back(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    for batch in range(INTERVAL):
        keep(writer, batch)
    table = DeltaTable(tmp_path)
    DeltaTable(tmp_path).delete()

    with pytest.raises(CommitFailedError):
        merge_small_files(table)

    assert read_batches(tmp_path) == []


def test_a_second_driver_and_a_maintenance_in_between_store_each_batch_once(tmp_path: Path) -> None:
    first, second = writer_of(tmp_path), writer_of(tmp_path)
    other = writer_of(tmp_path, "sums")
    for batch in range(3 * INTERVAL):
        keep(first, batch)
        keep(second, batch)
        keep(other, batch, "sums")

    assert len(DeltaTable(tmp_path).file_uris()) <= INTERVAL + MOST_SMALL
    for query in ("copy", "sums"):
        assert read_batches(tmp_path, query) == list(range(3 * INTERVAL))


def test_a_failed_maintenance_fails_no_batch_and_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError("No space left on device")

    writer = writer_of(tmp_path)
    with monkeypatch.context() as faulty:
        faulty.setattr(maintenance, "merge_small_files", fail)
        for batch in range(INTERVAL + 1):
            keep(writer, batch)
    assert "No space left" in caplog.text
    assert f"{INTERVAL:020}.checkpoint.parquet" in log_entries(tmp_path)

    for batch in range(INTERVAL + 1, 2 * INTERVAL + 1):
        keep(writer, batch)
    assert len(DeltaTable(tmp_path).file_uris()) == 1
    assert read_batches(tmp_path) == list(range(2 * INTERVAL + 1))


def test_a_table_that_delta_rs_cannot_open_fails_no_batch_that_spark_has_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise DeltaError("a type that it does not know")

    monkeypatch.setattr(sink_maintenance, "DeltaTable", fail)
    monkeypatch.setattr(sink_maintenance, "cached_snapshot", lambda *_: SimpleNamespace(version=INTERVAL))
    monkeypatch.setattr(sink_maintenance, "table_lock", lambda *_: nullcontext())
    no_session: Any = None
    sink = DeltaSink.model_validate({"path": str(tmp_path / "table")})

    SinkMaintenance(sink, OutputMode.APPEND).after_spark(no_session)

    assert "could not be maintained" in caplog.text
    assert "a type that it does not know" in caplog.text


def test_added_dead_letters_change_the_mark_although_old_log_entries_are_deleted(tmp_path: Path) -> None:
    store = DeltaDeadLetterStore(path=Location(tmp_path))
    writer = writer_of(tmp_path)
    keep(writer, 0)
    before = store.change_mark()
    keep(writer, 1)
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()

    assert store.change_mark() != before


def test_checksums_of_deleted_log_entries_are_deleted(tmp_path: Path) -> None:
    table_properties = dict.fromkeys(maintenance.SHORT_HISTORY, "interval 0 seconds")
    for number in range(3):
        write_deltalake(
            tmp_path,
            pa.table({"n": [number]}),
            mode="append",
            configuration=None if number else table_properties,
        )
    log = tmp_path / "_delta_log"
    for name in ("00000000000000000001.crc", ".00000000000000000001.json.crc", "00000000000000000002.crc"):
        (log / name).write_text("{}")

    TableMaintenance(tmp_path).run(DeltaTable(tmp_path))

    assert [name for name in log_entries(tmp_path) if name.endswith("crc")] == ["00000000000000000002.crc"]


@pytest.mark.parametrize(
    ("sizes", "target"),
    [
        ([1] * MOST_SMALL, 0),
        ([1] * (MOST_SMALL + 1), maintenance.SMALL_FILE),
        ([maintenance.SMALL_FILE] * (maintenance.MOST_MEDIUM + 1), maintenance.LARGE_FILE),
        ([maintenance.LARGE_FILE] * 1000, 0),
    ],
    ids=["few", "small", "medium", "large"],
)
def test_files_are_merged_if_many_are_small(sizes: list[int], target: int) -> None:
    assert maintenance._target_size(sizes) == target


def test_so_many_files_that_the_batch_would_wait_for_minutes_are_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(maintenance, "MOST_FILES", INTERVAL)
    writer = writer_of(tmp_path)
    for batch in range(INTERVAL + 1):
        keep(writer, batch)

    assert len(DeltaTable(tmp_path).file_uris()) == INTERVAL + 1
    assert "run OPTIMIZE once" in caplog.text
