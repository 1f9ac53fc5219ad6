"""Halves of log files that a kill left: gone before the first batch, untouched later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checkpoint.integrity.temp_files import delete_partial_files

if TYPE_CHECKING:
    from pathlib import Path

HALF = ".0.6f1c9a60-7f0e-4d8e-9a53-0a3f9a1b2c3d.tmp"


def write_files(folder: Path, *names: str) -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("v1\n")


def test_halves_of_the_first_offsets_are_deleted_and_nothing_else(tmp_path: Path) -> None:
    write_files(
        tmp_path, f"offsets/{HALF}", f"offsets/.{HALF}.crc", f"commits/{HALF}", "metadata", "sources/0/0"
    )

    swept = delete_partial_files(tmp_path)

    assert [str(file.relative_to(tmp_path)) for file in swept] == [
        f"offsets/.{HALF}.crc",
        f"offsets/{HALF}",
        f"commits/{HALF}",
    ]
    left = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file())
    assert left == ["metadata", "sources/0/0"]


def test_a_checkpoint_that_has_planned_a_batch_is_left_alone(tmp_path: Path) -> None:
    write_files(tmp_path, "offsets/0", f"offsets/{HALF}")

    assert delete_partial_files(tmp_path) == []
    assert (tmp_path / "offsets" / HALF).exists()


def test_what_nobody_half_wrote_stays_and_is_spark_s_to_refuse(tmp_path: Path) -> None:
    write_files(tmp_path, "offsets/notes.txt", "offsets/notes.tmp", "offsets/.hidden")

    assert delete_partial_files(tmp_path) == []


def test_a_checkpoint_that_is_not_there_has_no_halves(tmp_path: Path) -> None:
    assert delete_partial_files(tmp_path / "none") == []
