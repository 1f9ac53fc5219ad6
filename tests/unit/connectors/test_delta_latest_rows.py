"""The newest rows of a Delta table, read without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import deltalake.fs
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

from millstream.connectors.delta import latest_rows
from millstream.connectors.delta.latest_rows import read_latest_rows
from millstream.connectors.delta.source import DeltaSource
from millstream.diagnostics.failure import Unreachable
from millstream.spec.location import Location

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three commits of a row each; the last is in a part with a name that no file has as it is."""
    for number, part in enumerate(["plain", "plain", "a b:1%x"]):
        rows = pa.table({"n": [number], "part": [part]})
        write_deltalake(tmp_path, rows, mode="append", partition_by=["part"])
    return tmp_path


def test_the_rows_of_the_newest_file_come_first_whatever_its_part_is_called(table: Path) -> None:
    names, rows = read_latest_rows(Location(str(table)), 2)

    assert names == ["n", "part"]
    assert rows == [[2, "a b:1%x"], [1, "plain"]]


def test_no_thread_comes_back_to_python_which_may_have_ended(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object) -> None:
        raise AssertionError("a file was opened in Python, from a thread of Arrow's")

    monkeypatch.setattr(deltalake.fs.DeltaStorageHandler, "open_input_file", opened)

    assert len(read_latest_rows(Location(str(table)), 10)[1]) == 3


@pytest.mark.parametrize("error", [OSError("connection refused"), DeltaError("the bucket does not answer")])
def test_storage_that_does_not_answer_is_an_outage(
    table: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(latest_rows, "DeltaTable", refuse)

    with pytest.raises(Unreachable, match=str(error)):
        DeltaSource(path=Location(str(table))).probe()
    with pytest.raises(Unreachable, match=str(error)):
        read_latest_rows(Location(str(table)), 2)
