"""Repair a checkpoint where possible. Truncated files are moved aside, never deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checkpoint.atomic_file import write_durably
from millstream.checkpoint.remote.path import relative_path, rename_path

if TYPE_CHECKING:
    from millstream.checkpoint.integrity.damage_report import CheckpointDamage
    from millstream.checkpoint.remote.path import CheckpointPath


def repair(folder: CheckpointPath, damage: CheckpointDamage) -> list[CheckpointPath]:
    """Repair one damage, and return the new places of the files that were moved aside.

    They go into `_millstream/aside/`, under their path with slashes as dots and a number. Raises OSError if the
    folder cannot be written.
    """
    moved_files = []
    for file in damage.moved_files:
        moved_files.append(_move_aside(folder, file))
    # Hadoop compares a file with its checksum file, which is that of the former file.
    sum_file = damage.file.with_name(f".{damage.file.name}.crc")
    sum_file.unlink(missing_ok=True)
    if damage.new_text is not None:
        write_durably(damage.file, damage.new_text)
    return moved_files


def _move_aside(folder: CheckpointPath, file: CheckpointPath) -> CheckpointPath:
    """Move one file. A second file of that name gets the next number."""
    aside_folder = folder / "_millstream" / "aside"
    aside_folder.mkdir(parents=True, exist_ok=True)
    name = ".".join(relative_path(file, folder).parts)
    number = 1 + sum(path.name.startswith(f"{name}.") for path in aside_folder.iterdir())
    target = aside_folder / f"{name}.{number}"
    rename_path(file, target)
    return target
