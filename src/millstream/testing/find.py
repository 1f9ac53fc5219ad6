"""Find the test files that are meant, and the tests in them that are."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import WrongUse
from millstream.testing.specs import nearest_spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.testing.case import Case

FOLDER = "tests"
SUFFIXES = (".yml", ".yaml")
# A test file's own key at the left edge; a file of data or settings among the tests has none.
_TESTS = re.compile(rb"^[\"']?tests[\"']?[ \t]*:", re.MULTILINE)
# Other tools have such a key as well, and none of them a test of steps.
_STEPS = re.compile(rb"\bsteps[\"']?[ \t]*:")
# The key of a file with many tests stands behind its pipeline, which may be long.
_MOST_BYTES = 1 << 20
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv"})


def is_test_file(path: Path) -> bool:
    """Is it YAML below a folder `tests`, with a key `tests` at its top and `steps` in it? Reads the file."""
    if path.suffix not in SUFFIXES or FOLDER not in path.parts:
        return False
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES)
    except OSError:
        return False
    return bool(_TESTS.search(text) and _STEPS.search(text))


def find(paths: Sequence[Path]) -> list[Path]:
    """The test files of these files and folders; without any, those of the project that is worked in.

    Of a folder, those below its folder `tests` where it has one. Raises `WrongUse` when there is none at all.
    """
    found: list[Path] = []
    for path in paths or [_project()]:
        if path.is_file():
            found.append(path)
        elif path.is_dir():
            below = list(_below(path / FOLDER if (path / FOLDER).is_dir() else path))
            if not below:
                raise WrongUse(
                    f"there is no test file in {path}",
                    f"write one: {path / FOLDER / 'first.yml'} with a key 'tests'",
                )
            found += below
        else:
            raise WrongUse(f"there is no file or folder {path}", "name a test file or its folder")
    return list(dict.fromkeys(found))


def _project() -> Path:
    """The folder of the nearest pipeline, or the one that is worked in; named from there."""
    spec = nearest_spec(Path.cwd())
    return Path(os.path.relpath(spec.parent)) if spec else Path()


def _below(folder: Path) -> Iterator[Path]:
    """The test files below a folder, in the order of their names."""
    for place, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(names):
            # What is named by a relative folder may stand below `tests` all the same.
            if is_test_file((Path(place) / name).absolute()):
                yield Path(place) / name


def chosen(cases: Sequence[Case], words: str | None) -> list[Case]:
    """The tests whose file and name hold all of the words, in capitals or not."""
    wanted = (words or "").lower().split()
    return [case for case in cases if all(word in f"{case.file} {case.name}".lower() for word in wanted)]
