"""Folders whose names delta-rs reads as those of other folders, or cannot open: known before it is called."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from millstream.connectors.delta.commit.delta_rs_paths import is_misread
from millstream.connectors.delta.dead_letter_table import purge, read_rows
from millstream.connectors.delta.latest_rows import read_latest_rows, table_id
from millstream.diagnostics.failure import NotReady
from millstream.spec.location import Location

if TYPE_CHECKING:
    from pathlib import Path

NAMES = (
    *("a b", "a#b", "a+b", "a?b", "a:b", "a;b", "a&b=c", "a~b", "a'b", "a`b", 'a"b', "a<b", "a@b", "a$b"),
    *("{a,b}", "a*b", "100%", "a%2", "a%zzb", "grün", "gru\u0308n", "日本"),
    *("a%20b", "%41", "a\\b", "a\tb", "[1]", "a|b", "a^b"),
)


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with two rows in a folder with a plain name."""
    folder = tmp_path_factory.mktemp("named") / "plain"
    write_deltalake(folder, pa.table({"n": [1, 2]}))
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_the_check_of_a_name_agrees_with_what_delta_rs_does(name: str, table: Path, tmp_path: Path) -> None:
    folder = tmp_path / name
    shutil.copytree(table, folder)

    assert is_misread(folder) is not can_merge(folder)
    assert is_misread(folder, appends=True) is not can_append(folder)


def can_merge(folder: Path) -> bool:
    try:
        merger = DeltaTable(str(folder)).merge(
            pa.table({"n": [2, 3]}), "held.n = come.n", source_alias="come", target_alias="held"
        )
        merger.when_not_matched_insert_all().execute()
    except BaseException:  # noqa: BLE001 - a panic of Rust is no Exception
        return False
    return DeltaTable(str(folder)).to_pyarrow_table().num_rows == 3


def can_append(folder: Path) -> bool:
    try:
        write_deltalake(str(folder), pa.table({"n": [9]}), mode="append")
    except BaseException:  # noqa: BLE001 - as above
        return False
    return 9 in DeltaTable(str(folder)).to_pyarrow_table()["n"].to_pylist()


def test_a_table_in_a_folder_that_is_misread_is_not_shown_as_another_one(table: Path, tmp_path: Path) -> None:
    shutil.copytree(table, tmp_path / "a b")
    misread = Location(tmp_path / "a%20b")

    for read in (
        lambda: read_latest_rows(misread, 5),
        lambda: table_id(misread),
        lambda: list(read_rows(misread)),
        lambda: purge(misread, None, None),
    ):
        with pytest.raises(NotReady, match="its path contains '%20'"):
            read()


def test_dead_letters_are_not_purged_where_delta_rs_would_panic(table: Path, tmp_path: Path) -> None:
    shutil.copytree(table, tmp_path / "x[1]")

    with pytest.raises(NotReady, match=r"cannot be changed without Spark, because its path contains '\['"):
        purge(Location(tmp_path / "x[1]"), None, None)
