"""Mend what can be mended in a checkpoint: torn files are set aside, never deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.checkpoint.wrong import Damage


def repair(folder: Path, found: Damage) -> list[Path]:
    """Do one cure, and give the places where files were set aside.

    They go into `_millstream/aside/`, under their path with slashes as dots and a number. Raises OSError when
    the folder cannot be written.
    """
    moved = []
    for file in found.aside:
        moved.append(_aside(folder, file))
    # Hadoop compares a file with the sum beside it, which is that of the file that is gone.
    sum_file = found.file.with_name(f".{found.file.name}.crc")
    sum_file.unlink(missing_ok=True)
    if found.written is not None:
        half = found.file.with_name(f".{found.file.name}.half")
        half.write_text(found.written)
        half.replace(found.file)
    return moved


def _aside(folder: Path, file: Path) -> Path:
    """Move one file; a second of that name gets the next number."""
    place = folder / "_millstream" / "aside"
    place.mkdir(parents=True, exist_ok=True)
    name = ".".join(file.relative_to(folder).parts)
    number = 1 + sum(one.name.startswith(f"{name}.") for one in place.iterdir())
    target = place / f"{name}.{number}"
    file.rename(target)
    return target
