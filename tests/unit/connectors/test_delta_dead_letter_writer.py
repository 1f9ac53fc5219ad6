"""Dead letters in a Delta table whose log the writer has read before."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from millstream.connectors.api.values.dead_letter_rows import SCHEMA
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta import dead_letter_writer
from millstream.connectors.delta.dead_letter_table import read_rows
from millstream.connectors.delta.dead_letter_writer import DeltaDeadLetterWriter
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

# No Spark is needed but to wait for the lock.
SPARK: Any = SimpleNamespace()


def writer_of(folder: Path, query: str) -> DeltaDeadLetterWriter:
    identity = SinkIdentity("shop", query, query, "dead_letters", OutputMode.APPEND)
    return DeltaDeadLetterWriter(Location(folder), identity)


def keep(writer: DeltaDeadLetterWriter, query: str, batch_id: int) -> None:
    letter = {"query": query, "source": "orders", "value": b"{", "reason": "the value is not JSON"}
    letter |= {"batch_id": batch_id, "at": datetime(2026, 1, 1, tzinfo=UTC)}
    writer.keep_rows(SPARK, pa.Table.from_pylist([letter], schema=SCHEMA), batch_id)


def read_batches(folder: Path) -> list[tuple[str, int]]:
    return sorted((letter.query, letter.batch_id) for letter in read_rows(Location(folder)))


def test_a_writer_opens_the_table_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = writer_of(tmp_path, "copy")
    keep(writer, "copy", 0)
    opened = []

    class Counted(DeltaTable):
        def __init__(self, *given: Any) -> None:
            opened.append(given)
            super().__init__(*given)

    monkeypatch.setattr(dead_letter_writer, "DeltaTable", Counted)
    for batch in range(1, 5):
        keep(writer, "copy", batch)

    assert len(opened) == 1
    assert read_batches(tmp_path) == [("copy", batch) for batch in range(5)]


def test_two_writers_of_one_table_see_each_others_commits(tmp_path: Path) -> None:
    writers = {query: writer_of(tmp_path, query) for query in ("copy", "sums")}

    for batch in range(3):
        for query, writer in writers.items():
            keep(writer, query, batch)
            keep(writer, query, batch)

    assert read_batches(tmp_path) == [(query, batch) for query in writers for batch in range(3)]


def test_a_batch_that_another_start_of_the_query_has_stored_meanwhile_adds_nothing(tmp_path: Path) -> None:
    first, second = writer_of(tmp_path, "copy"), writer_of(tmp_path, "copy")
    for batch in range(2):
        keep(first, "copy", batch)
    keep(second, "copy", 2)

    keep(first, "copy", 2)

    assert read_batches(tmp_path) == [("copy", batch) for batch in range(3)]


@pytest.mark.parametrize("commits", [0, 1], ids=lambda count: f"{count} commits of another")
def test_a_table_that_was_deleted_is_created_again_and_readable(tmp_path: Path, commits: int) -> None:
    folder = tmp_path / "letters"
    writer = writer_of(folder, "copy")
    for batch in range(3):
        keep(writer, "copy", batch)
    shutil.rmtree(folder)
    other = writer_of(folder, "sums")
    for batch in range(commits):
        keep(other, "sums", batch)

    keep(writer, "copy", 3)
    keep(writer, "copy", 4)

    assert read_batches(folder) == [
        ("copy", 3),
        ("copy", 4),
        *(("sums", batch) for batch in range(commits)),
    ]
