"""Find the files of a project, and read the columns of files that are on this machine."""

from __future__ import annotations

import os
import re
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.dataframe import DataFrame

from millstream.analysis.folder_paths import normalize_path
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql.types import StructType

# Folders whose files are not a project's own, and the number of folders that are searched at most.
_NOT_OF_PROJECT = ("venv", "env", "site-packages", "node_modules", "tests", "test", "build", "dist")
_MOST_FOLDERS = 1_000
# How a path of another system begins, such as s3a:// or dbfs:/.
_SCHEME = re.compile(r"(?!file:)[A-Za-z][\w+.-]+:")


def keep_project_folders(names: Iterable[str]) -> list[str]:
    """Return those names of folders that may hold files of a project: no environments, tests or hidden folders."""
    return [name for name in names if not name.startswith(".") and name not in _NOT_OF_PROJECT]


def find_files(root: Path, name: str) -> list[Path]:
    """Return the files of a project that have a name; none of a project with very many folders."""
    files: list[Path] = []
    for number, (folder, folders, names) in enumerate(os.walk(root)):
        if number == _MOST_FOLDERS:
            return []
        folders[:] = keep_project_folders(folders)
        files += [Path(folder, name)] if name in names else []
    return files


def find_copied_file(path: Path, project: Path | None) -> Path | None:
    """Return the file of a project that a container has at an absolute path, or None if it is not certain.

    `/opt/data/schemas/user.json` is `data/schemas/user.json` of the project: the one with the longest end in common.
    """
    if project is None or not path.is_absolute() or not path.suffix or path.exists():
        return None
    files = find_files(project, path.name)
    for count in range(len(path.parts) - 1, 0, -1):
        if same := [file for file in files if file.parts[-count:] == path.parts[-count:]]:
            return same[0] if len(same) == 1 else None
    return None


def columns_of_files(
    spark: Any, kind: str, options: Mapping[str, str], place: str, project: Path | None = None
) -> StructType | None:
    """Return the columns of local files, or None if there are no files or they cannot be read.

    `project` has the file of a path that only a container has.
    """
    path = Path(place.removeprefix("file://"))
    path = find_copied_file(path, project) or path
    if "://" in place.removeprefix("file://") or not path.exists():
        return None
    reader = internals.java_session(spark).read().format(kind)
    for key, value in options.items():
        if key.lower() != "path":
            reader = reader.option(key, value)
    try:
        frame = reader.load(str(path))
    except PySparkException:
        # The folder is empty or the files have another format, so the columns are not known.
        return None
    return DataFrame(frame, spark).schema


def tell_why_unread(place: str) -> str:
    """Return why the columns of the files at a place are not known, as a clause."""
    if _SCHEME.match(place) or has_magic(place):
        return "a check does not connect to it"
    exists = Path(normalize_path(place)).exists()
    return "no file there tells of them" if exists else "it does not exist on this machine"
