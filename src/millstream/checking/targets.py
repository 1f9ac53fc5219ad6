"""Find the targets of `millstream check`: specs, PySpark scripts and declarative-pipelines projects."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import WrongUse
from millstream.pipeline.spec_file import display_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SPEC = "pipeline.yml"
PROJECTS = ("spark-pipeline.yml", "spark-pipeline.yaml")
# Folders of installed packages and of build output.
SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "dist", "build", "target"})
_IMPORTS_MILLSTREAM = re.compile(r"^\s*(?:import millstream\b|from millstream\b)", re.MULTILINE)


class TargetKind(StrEnum):
    """How a target is checked."""

    SPEC = "spec"
    """A Millstream pipeline, in YAML or in Python."""
    SCRIPT = "script"
    """An unmodified PySpark script."""
    PROJECT = "project"
    """A folder of Spark declarative pipelines."""


@dataclass(frozen=True)
class CheckTarget:
    """One target to check. `path` is the file, or the folder of a project."""

    kind: TargetKind
    path: Path

    @property
    def name(self) -> str:
        """The name of the target in messages."""
        return str(display_path(self.path))

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self.path if self.kind is TargetKind.PROJECT else self.path.parent


def find_targets(paths: Sequence[Path]) -> list[CheckTarget]:
    """Return the targets in the given files and folders, without duplicates, in their order.

    A folder that is not a project itself yields all projects and specs below it. Raises WrongUse for a path that
    does not exist, and for a folder without anything to check.
    """
    result: list[CheckTarget] = []
    for path in paths:
        inside = list(_targets_of(path))
        if not inside:
            raise WrongUse(
                f"there is nothing to check in {path}",
                f"name a folder with {SPEC} or {PROJECTS[0]}, a spec, or a script",
            )
        result += inside
    return list(dict.fromkeys(result))


def _targets_of(path: Path) -> Iterator[CheckTarget]:
    if path.is_dir():
        own_targets = list(_targets_in(path))
        yield from own_targets or _targets_below(path)
    elif not path.is_file():
        raise WrongUse(f"there is no file {path}", "name a spec, a script, or a folder that holds one")
    elif path.name in PROJECTS:
        yield CheckTarget(TargetKind.PROJECT, path.parent)
    elif path.suffix == ".py":
        yield CheckTarget(TargetKind.SPEC if _is_millstream(path) else TargetKind.SCRIPT, path)
    else:
        yield CheckTarget(TargetKind.SPEC, path)


def _targets_in(path: Path) -> Iterator[CheckTarget]:
    """Yield the targets of a folder itself."""
    if (path / SPEC).is_file():
        yield CheckTarget(TargetKind.SPEC, path / SPEC)
    if any((path / name).is_file() for name in PROJECTS):
        yield CheckTarget(TargetKind.PROJECT, path)


def _targets_below(path: Path) -> Iterator[CheckTarget]:
    """Yield the targets of the folders below, by name. Skip hidden folders and do not follow links."""
    for folder, folders, _ in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        yield from _targets_in(Path(folder))


def _is_millstream(path: Path) -> bool:
    """Return whether a Python file declares a Millstream pipeline."""
    try:
        return bool(_IMPORTS_MILLSTREAM.search(path.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return False
