"""Find test files in files and folders, and select tests by name."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import InvalidInput
from millstream.testing.files.pipelines import find_nearest_spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.testing.model import Case

FOLDER = "tests"
SUFFIXES = (".yml", ".yaml")
# A test file has this key at the left margin; files of data or settings among the tests do not. Editors of Windows
# write a byte order mark before the first line.
_TESTS = re.compile(rb"(?:^|\A\xef\xbb\xbf)[\"']?tests[\"']?[ \t]*:", re.MULTILINE)
# Files of other tools may have a key `tests` too, but their tests have no `steps`.
_STEPS = re.compile(rb"\bsteps[\"']?[ \t]*:")
# The key `tests` may follow an inline pipeline, which may be long.
_MOST_BYTES = 1 << 20
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv"})


def is_test_file(path: Path) -> bool:
    """Return whether the path is YAML below a folder `tests` with a top-level key `tests` and a key `steps`.

    Reads the file.
    """
    if path.suffix not in SUFFIXES or FOLDER not in path.parts:
        return False
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES)
    except OSError:
        return False
    return bool(_TESTS.search(text) and _STEPS.search(text))


def find_test_files(paths: Sequence[Path]) -> list[Path]:
    """Find the test files of these files and folders; without any, those of the current project.

    If a folder has a subfolder `tests`, only that subfolder is searched. Raises `InvalidInput` if a path does not
    exist or a folder has no test file.
    """
    files: list[Path] = []
    for path in paths or [find_project_folder()]:
        if path.is_file():
            files.append(path)
        elif path.is_dir():
            in_folder = list(_below(path / FOLDER if (path / FOLDER).is_dir() else path))
            if not in_folder:
                raise InvalidInput(
                    f"there is no test file in {path}",
                    f"write one: {path / FOLDER / 'first.yml'} with a key 'tests'",
                )
            files += in_folder
        else:
            raise InvalidInput(f"there is no file or folder {path}", "name a test file or its folder")
    return list(dict.fromkeys(files))


def find_project_folder() -> Path:
    """Return the folder of the nearest pipeline, or the working folder, as a relative path."""
    spec = find_nearest_spec(Path.cwd())
    return Path(os.path.relpath(spec.parent)) if spec else Path()


def _below(folder: Path) -> Iterator[Path]:
    """Yield the test files below a folder, sorted by name."""
    for parent, subfolders, names in os.walk(folder):
        subfolders[:] = sorted(
            name for name in subfolders if name not in _SKIPPED and not name.startswith(".")
        )
        for name in sorted(names):
            # A relative path may lack the folder `tests` that the absolute path contains.
            if is_test_file((Path(parent) / name).absolute()):
                yield Path(parent) / name


def select_cases(cases: Sequence[Case], words: str | None) -> list[Case]:
    """Return the tests whose file and name contain all of the words, ignoring case."""
    search_words = (words or "").lower().split()
    return [
        case for case in cases if all(word in f"{case.file} {case.name}".lower() for word in search_words)
    ]
