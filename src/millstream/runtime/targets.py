"""What `check` is asked to check: specs, scripts of PySpark, projects of declarative pipelines."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import WrongUse
from millstream.pipeline.load import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SPEC = "pipeline.yml"
PROJECTS = ("spark-pipeline.yml", "spark-pipeline.yaml")
# Folders that hold other people's pipelines, or what a build made.
SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "dist", "build", "target"})
_OURS = re.compile(r"^\s*(?:import millstream\b|from millstream\b)", re.MULTILINE)


class Kind(StrEnum):
    """How a target is checked."""

    SPEC = "spec"
    """A pipeline of Millstream, in YAML or in Python."""
    SCRIPT = "script"
    """A PySpark script, taken as it is."""
    PROJECT = "project"
    """A folder of Spark declarative pipelines."""


@dataclass(frozen=True)
class Target:
    """One thing to check; `path` is the file, or the folder of a project."""

    kind: Kind
    path: Path

    @property
    def name(self) -> str:
        """As messages call it."""
        return str(shown(self.path))

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return self.path if self.kind is Kind.PROJECT else self.path.parent


def targets(given: Sequence[Path]) -> list[Target]:
    """What the given files and folders hold, each once, in their order.

    A folder that is no project itself stands for all projects and specs below it. Raises WrongUse for a path that is
    not there, and for a folder that holds nothing to check.
    """
    found: list[Target] = []
    for path in given:
        inside = list(_of(path))
        if not inside:
            raise WrongUse(
                f"there is nothing to check in {path}",
                f"name a folder with {SPEC} or {PROJECTS[0]}, a spec, or a script",
            )
        found += inside
    return list(dict.fromkeys(found))


def _of(path: Path) -> Iterator[Target]:
    if path.is_dir():
        here = list(_folder(path))
        yield from here or _below(path)
    elif not path.is_file():
        raise WrongUse(f"there is no file {path}", "name a spec, a script, or a folder that holds one")
    elif path.name in PROJECTS:
        yield Target(Kind.PROJECT, path.parent)
    elif path.suffix == ".py":
        yield Target(Kind.SPEC if _is_ours(path) else Kind.SCRIPT, path)
    else:
        yield Target(Kind.SPEC, path)


def _folder(path: Path) -> Iterator[Target]:
    """What a folder is by itself."""
    if (path / SPEC).is_file():
        yield Target(Kind.SPEC, path / SPEC)
    if any((path / name).is_file() for name in PROJECTS):
        yield Target(Kind.PROJECT, path)


def _below(path: Path) -> Iterator[Target]:
    """What the folders below hold, by name; hidden ones are left out, and links are not followed."""
    for place, folders, _ in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        yield from _folder(Path(place))


def _is_ours(path: Path) -> bool:
    """Does a Python file declare a pipeline of Millstream?"""
    try:
        return bool(_OURS.search(path.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return False
