"""Detect changed files of a target by their modification times and sizes."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.checking.targets import SKIPPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Of the files of a project with a spec. No part of it can be a notebook, which Jupyter saves every two minutes.
PROJECT_SUFFIXES = (".yml", ".yaml", ".sql", ".py", ".avsc", ".env")
SUFFIXES = (*PROJECT_SUFFIXES, ".ipynb")
# A project has views one folder down, and modules perhaps two. Deeper folders contain data and are not watched.
DEEPEST = 3
MOST_FILES = 2000

Stamps = dict[Path, tuple[int, int]]


def read_stamps(
    folders: Iterable[Path], more: Iterable[Path] = (), *, suffixes: tuple[str, ...] = SUFFIXES
) -> Stamps:
    """Return the time and size of each file that a check may read: specs, SQL, Python, notebooks, schemas and `.env`.

    `more` are single files, which may be outside of the folders. Reads at most 2,000 files, three folders deep.
    """
    result: Stamps = {}
    for file in (*more, *_files(folders, suffixes)):
        if len(result) >= MOST_FILES:
            break
        try:
            status = file.stat()
        except OSError:
            # The file was deleted after it was listed. Its absence is the change.
            continue
        if stat.S_ISREG(status.st_mode):
            result[file] = (status.st_mtime_ns, status.st_size)
    return result


def unload_modules(folders: Iterable[Path]) -> None:
    """Unload the modules that were imported from these folders, so that the next check reads them again."""
    within = tuple(f"{folder.resolve()}{os.sep}" for folder in folders)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        # Packages in a project's own environment do not change while the project is watched.
        if file and str(file).startswith(within) and "site-packages" not in file and _is_user_module(name):
            del sys.modules[name]


def _is_user_module(name: str) -> bool:
    return name != "__main__" and name.partition(".")[0] != "millstream"


def _files(folders: Iterable[Path], suffixes: tuple[str, ...]) -> Iterator[Path]:
    for folder in dict.fromkeys(folders):
        for parent, below, names in os.walk(folder):
            path = Path(parent)
            depth = len(path.relative_to(folder).parts)
            visible = sorted(name for name in below if name not in SKIPPED and not name.startswith("."))
            below[:] = visible if depth < DEEPEST else []
            yield from (path / name for name in sorted(names) if name.endswith(suffixes))
