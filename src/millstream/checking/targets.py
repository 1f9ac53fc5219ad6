"""Find the targets of `millstream check`: specs, PySpark scripts and declarative-pipelines projects."""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.analysis.python.parsing import parse_python
from millstream.checking.bundles import declares_pipelines, read_bundle
from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.spec_file import display_path

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

SPEC = "pipeline.yml"
PROJECTS = ("spark-pipeline.yml", "spark-pipeline.yaml")
# Folders of installed packages and of build output.
SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "dist", "build", "target"})
# Other languages in which Spark's jobs are written.
_LANGUAGES = {
    ".scala": "Scala", ".java": "Java", ".kt": "Kotlin", ".r": "R", ".sql": "SQL", ".jar": "a compiled job",
    ".sh": "a shell script", ".dbc": "an archive of Databricks", ".html": "HTML",
}  # fmt: skip
# The keys that a declarative project's spec has and a Millstream spec has not.
_PROJECT_KEYS = re.compile(r"^[\"']?(?:libraries|definitions)[\"']?\s*:", re.MULTILINE)
_SPEC_KEYS = re.compile(r"^[\"']?(?:sources|queries)[\"']?\s*:", re.MULTILINE)
# Spark's word, and a method of AWS Glue.
_STARTS_QUERIES = re.compile(r"\b(?:writeStream|forEachBatch)\b")
_DECLARES_TABLES = re.compile(
    r"^\s*\"?(?:import dlt\b|from dlt\b|from pyspark import pipelines\b|(?:import|from) pyspark\.pipelines\b)",
    re.MULTILINE,
)
# A file of a project that forgot the import.
_USES_DECLARATIONS = re.compile(r"^(?:@(?:dlt|dp)\.|(?:dlt|dp)\.\w+\()", re.MULTILINE)
_CREATES = r"^\s*CREATE\s+(?:OR\s+(?:REFRESH|REPLACE)\s+)?(?:TEMPORARY\s+)?"
_LIVE = r"(?:(?:STREAMING|INCREMENTAL)\s+)?LIVE\s+(?:TABLE|VIEW)"
_DECLARES_IN_SQL = re.compile(
    rf"{_CREATES}(?:STREAMING\s+TABLE|MATERIALIZED\s+VIEW|FLOW|{_LIVE})\b",
    re.MULTILINE | re.IGNORECASE,
)
# Words that no other database has.
_DECLARES_A_STREAM_IN_SQL = re.compile(
    rf"{_CREATES}(?:STREAMING\s+TABLE|{_LIVE})\b",
    re.MULTILINE | re.IGNORECASE,
)
_IMPORTS_MILLSTREAM = re.compile(r"^\s*(?:import millstream\b|from millstream\b)", re.MULTILINE)


class TargetKind(StrEnum):
    """How a target is checked."""

    SPEC = "spec"
    """A Millstream pipeline, in YAML or in Python."""
    SCRIPT = "script"
    """An unmodified PySpark script."""
    PROJECT = "project"
    """A project of Spark declarative pipelines: its folder, its spec, or files that declare its tables."""


@dataclass(frozen=True)
class CheckTarget:
    """One target to check. `path` is the file, or the folder of a project with the usual spec."""

    kind: TargetKind
    path: Path

    @property
    def name(self) -> str:
        """The name of the target in messages."""
        return str(display_path(self.path))

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self.path if self.path.is_dir() else self.path.parent


def find_targets(paths: Sequence[Path]) -> list[CheckTarget]:
    """Return the targets in the given files and folders, without duplicates, in their order.

    A folder that is not a project itself yields all projects and specs below it, and the scripts and notebooks
    that start queries outside of them. Raises WrongUse for a path that does not exist, for a folder without
    anything to check, and for a file in another language.
    """
    result: list[CheckTarget] = []
    for path in paths:
        inside = list(_targets_of(path))
        if not inside:
            raise InvalidInput(
                f"{path} contains nothing that can be checked",
                f"name a spec, a script, or a folder with {SPEC}, {PROJECTS[0]} or scripts that start a query",
            )
        result += inside
    return list(dict.fromkeys(result))


def _targets_of(path: Path) -> Iterator[CheckTarget]:
    if path.is_dir():
        own_targets = list(_targets_in(path))
        yield from own_targets or _targets_below(path)
    elif not path.is_file():
        raise InvalidInput(f"there is no file {path}", "name a spec, a script, or a folder that contains one")
    elif path.name in PROJECTS:
        yield CheckTarget(TargetKind.PROJECT, path.parent)
    elif path.suffix in (".py", ".ipynb"):
        yield CheckTarget(_kind_of_python(path), path)
    elif _is_project(path) or (path.suffix == ".sql" and _DECLARES_A_STREAM_IN_SQL.search(_read(path))):
        yield CheckTarget(TargetKind.PROJECT, path)
    elif (language := _LANGUAGES.get(path.suffix.lower())) is not None:
        raise InvalidInput(
            f"{path} is {language}; check reads specs, Python scripts and notebooks",
            "name a spec, a .py or .ipynb file, or the spec of a declarative project that has this file in it",
        )
    else:
        yield CheckTarget(TargetKind.SPEC, path)


def _targets_in(path: Path) -> Iterator[CheckTarget]:
    """Yield the targets of a folder itself."""
    spec = path / SPEC
    if spec.is_file():
        # The file of a bundle may have this name too.
        yield CheckTarget(TargetKind.PROJECT if _is_project(spec) else TargetKind.SPEC, spec)
    if any((path / name).is_file() for name in PROJECTS):
        yield CheckTarget(TargetKind.PROJECT, path)
    for file in sorted([*path.glob("*.yml"), *path.glob("*.yaml")]):
        if file.name not in (SPEC, *PROJECTS) and _is_project(file):
            yield CheckTarget(TargetKind.PROJECT, file)


def _targets_below(path: Path) -> Iterator[CheckTarget]:
    """Yield the targets of the folders below, by name. Skip hidden folders and do not follow links."""
    projects: list[Path] = []
    below = list(_list_folders(path))
    if is_project_of_folders(path):
        yield CheckTarget(TargetKind.PROJECT, path)
        return
    targets = {folder: list(_targets_in(folder)) for folder in below}
    taken = {
        source
        for inside in targets.values()
        for target in inside
        if (bundle := read_bundle(target.path) if target.path.is_file() else None) is not None
        for source in bundle.sources
    }
    for folder, inside in targets.items():
        yield from inside
        if inside:
            projects.append(folder)
        elif not any(folder.is_relative_to(project) for project in projects):
            yield from _scripts_in(folder, taken)


def is_project_of_folders(path: Path) -> bool:
    """Return whether several folders below declare the tables of one project: they have no spec and no script."""
    below = list(_list_folders(path))
    if any(True for folder in below for _ in _targets_in(folder)):
        return False
    declaring = {folder: list_declaring_files(folder) for folder in below}
    files = [file for inside in declaring.values() for file in inside]
    starts = any(
        _STARTS_QUERIES.search(_without_tables(_read(file)))
        for folder in below
        for file in _python_files(folder)
    )
    return len(files) > 1 and not starts and not declaring[path] and sum(map(bool, declaring.values())) > 1


def list_files_of_project(folder: Path) -> list[Path]:
    """Return the files of a project without a spec: those of its folder, or of the folders below."""
    if not is_project_of_folders(folder):
        return list_declaring_files(folder)
    return [
        file for below in _list_folders(folder) for file in list_declaring_files(below, is_for_spark=True)
    ]


def _list_folders(path: Path) -> Iterator[Path]:
    for folder, folders, _ in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        yield Path(folder)


def _scripts_in(folder: Path, taken: Container[Path]) -> Iterator[CheckTarget]:
    """Yield the scripts and notebooks of a folder that start queries, and a project of those that declare tables.

    `taken` are the files that belong to another project.
    """
    declaring = [file for file in list_declaring_files(folder) if file.resolve() not in taken]
    if len(declaring) > 1 or any(file.suffix == ".sql" for file in declaring):
        yield CheckTarget(TargetKind.PROJECT, folder)
        declaring = []
    for file in _python_files(folder):
        if file in declaring or _STARTS_QUERIES.search(_without_tables(_read(file))):
            yield CheckTarget(_kind_of_python(file), file)


def list_declaring_files(folder: Path, *, is_for_spark: bool = False) -> list[Path]:
    """Return the files of a folder that declare tables of a declarative project and start no query.

    SQL without Python counts only if it has words of Spark, or if it `is_for_spark` in any case: other databases have
    materialized views too.
    """
    python = [
        file
        for file in _python_files(folder)
        if _DECLARES_TABLES.search(_read(file)) and _kind_of_python(file) is TargetKind.PROJECT
    ]
    if python or is_for_spark:
        python = [
            file for file in _python_files(folder) if file in python or _USES_DECLARATIONS.search(_read(file))
        ]
    sql = [file for file in sorted(folder.glob("*.sql")) if _DECLARES_IN_SQL.search(_read(file))]
    is_for_spark = (
        is_for_spark or bool(python) or any(_DECLARES_A_STREAM_IN_SQL.search(_read(file)) for file in sql)
    )
    return [*python, *sql] if is_for_spark else []


def _python_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.py"), *folder.glob("*.ipynb")])


def _kind_of_python(path: Path) -> TargetKind:
    """Return what a Python file or a notebook declares: a Millstream pipeline, declarative tables, or neither."""
    text = _read(path)
    if path.suffix == ".py" and _IMPORTS_MILLSTREAM.search(text):
        return TargetKind.SPEC
    declares = _DECLARES_TABLES.search(text) and not _STARTS_QUERIES.search(_without_tables(text))
    return TargetKind.PROJECT if declares else TargetKind.SCRIPT


def _without_tables(text: str) -> str:
    """Return Python without its decorated functions: a table that starts a query is a mistake in a table."""
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError):
        return text
    lines = text.splitlines()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
    return "\n".join(lines)


def is_spec(path: Path) -> bool:
    """Return whether a YAML file has the name or the keys of a spec, of Millstream or of a declarative project."""
    return path.name in (SPEC, *PROJECTS) or _SPEC_KEYS.search(_read(path)) is not None or _is_project(path)


def _is_project(path: Path) -> bool:
    """Return whether the keys of a file are those of a declarative project's spec."""
    if path.suffix not in (".yml", ".yaml", ".json"):
        return False
    text = _read(path)
    is_project = _PROJECT_KEYS.search(text) is not None or declares_pipelines(text)
    return is_project and not _SPEC_KEYS.search(text)


def _read(path: Path) -> str:
    """Return the text of a file, "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""
