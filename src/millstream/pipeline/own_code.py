"""Tell the code of a project from the packages and the standard library that it uses."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
_PACKAGE_FOLDERS = frozenset({"site-packages", "dist-packages"})


def is_library(file: Path) -> bool:
    """Return whether a file belongs to an installed package or to the standard library of this Python."""
    return not _PACKAGE_FOLDERS.isdisjoint(file.parts) or file.is_relative_to(STANDARD_LIBRARY)


def find_own_path(file: Path, folder: Path) -> Path | None:
    """Return the path of a file in the folder of a project; None if it is not code of this project.

    A virtual environment in the folder is not code of the project. A file is in the folder if it is so either with
    symbolic links followed or without. A name such as `<string>` is not that of a file.
    """
    if file.name.startswith("<") or is_library(file):
        return None
    for path, parent in ((file.resolve(), folder.resolve()), (_normalize(file), _normalize(folder))):
        if path.is_relative_to(parent):
            return path.relative_to(parent)
    return None


def _normalize(path: Path) -> Path:
    """Return an absolute path without `..`, in which no symbolic link is followed."""
    return Path(os.path.normpath(path.absolute()))
