"""Which files of a target changed since they were last looked at, by their times and sizes."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.runtime.targets import SKIPPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SUFFIXES = (".yml", ".yaml", ".sql", ".py", ".env")
# A project has views one folder down, and modules perhaps two; its data lies deeper and is not looked at.
DEEPEST = 3
MOST_FILES = 2000

Stamps = dict[Path, tuple[int, int]]


def stamps(folders: Iterable[Path], more: Iterable[Path] = ()) -> Stamps:
    """The time and size of each file that a check may read: specs, SQL, Python and variables below the folders.

    `more` are single files that lie elsewhere. Looks at most 2,000 files, three folders deep.
    """
    found: Stamps = {}
    for file in (*_files(folders), *more):
        if len(found) >= MOST_FILES:
            break
        try:
            seen = file.stat()
        except OSError:
            # It went away between the listing and the look; its absence is the change.
            continue
        if stat.S_ISREG(seen.st_mode):
            found[file] = (seen.st_mtime_ns, seen.st_size)
    return found


def forget(folders: Iterable[Path]) -> None:
    """Forget the modules that were imported from these folders, so that the next check reads them again."""
    within = tuple(f"{folder.resolve()}{os.sep}" for folder in folders)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        # What is installed beside a project, in its own environment, does not change while it is watched.
        if file and str(file).startswith(within) and "site-packages" not in file and _foreign(name):
            del sys.modules[name]


def _foreign(name: str) -> bool:
    return name != "__main__" and name.partition(".")[0] != "millstream"


def _files(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in dict.fromkeys(folders):
        for place, below, names in os.walk(folder):
            here = Path(place)
            deep = len(here.relative_to(folder).parts)
            kept = sorted(name for name in below if name not in SKIPPED and not name.startswith("."))
            below[:] = kept if deep < DEEPEST else []
            yield from (here / name for name in sorted(names) if name.endswith(SUFFIXES))
