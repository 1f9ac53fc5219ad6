"""The spec of a Spark declarative-pipelines project: what it says, and what Spark would not take of it."""

from __future__ import annotations

import glob
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.catalogue import finding
from millstream.pipeline.describe import nearest
from millstream.pipeline.document import Document, read
from millstream.pipeline.load import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.diagnostics.finding import Finding

NAMES = ("spark-pipeline.yml", "spark-pipeline.yaml")
_KEYS = ("name", "storage", "catalog", "database", "schema", "configuration", "libraries")


@dataclass
class Project:
    """A project as far as its spec could be read."""

    folder: Path
    file: str
    """The spec, as findings name it."""
    text: str
    name: str = ""
    catalog: str = "spark_catalog"
    database: str = "default"
    configuration: dict[str, str] = field(default_factory=dict)
    sources: list[Path] = field(default_factory=list)
    """The files of its libraries, in the order in which Spark would load them."""
    findings: list[Finding] = field(default_factory=list)


def load(spec: Path) -> Project:
    """Read a spec. Never raises for what stands in it: that is in `findings`."""
    file = str(shown(spec))
    try:
        text = spec.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        found = finding("MS001", f"the file cannot be read: {failed}")
        return Project(spec.parent, file, "", findings=[found])
    document = read(file, text)
    project = Project(spec.parent.resolve(), file, text, findings=list(document.findings))
    if document.unreadable:
        return project
    if not isinstance(document.data, dict):
        project.findings.append(finding("MS001", "the spec is not a mapping of keys to values"))
        return project
    project.findings += _faults(document)
    data = document.data
    project.name = str(data.get("name", ""))
    project.catalog = str(data.get("catalog") or project.catalog)
    project.database = str(data.get("database", data.get("schema")) or project.database)
    given = data.get("configuration")
    if isinstance(given, dict):
        project.configuration = {str(key): str(value) for key, value in given.items()}
    for number, pattern in _patterns(document):
        _add(project, document, number, pattern)
    return project


def _faults(document: Document) -> Iterator[Finding]:
    """What Spark does not take of a spec's own keys."""
    for key in document.data:
        if key not in _KEYS:
            near = nearest(str(key), _KEYS)
            yield finding(
                "MS118",
                f"Spark knows no key '{key}' in a pipeline's spec",
                document.keys.get((key,)),
                fix=f"write '{near}'" if near else f"use one of {', '.join(_KEYS)}",
            )
    for key in ("name", "storage"):
        if key not in document.data:
            span = next(iter(document.keys.values()), None)
            yield finding(
                "MS118", f"the spec has no '{key}', and Spark needs one", span, fix=f"add '{key}: …'"
            )
    storage = document.data.get("storage")
    if isinstance(storage, str) and ":/" not in storage:
        yield finding(
            "MS118",
            "the storage is not an absolute path with a scheme",
            document.values.get(("storage",)),
            why="Spark refuses to run the pipeline: PIPELINE_STORAGE_ROOT_INVALID",
            fix="write file:///…, s3a://… or hdfs://…",
        )
    given = document.data.get("configuration") or {}
    for key, value in given.items() if isinstance(given, dict) else ():
        if not isinstance(value, str):
            yield finding(
                "MS118",
                f"the value of '{key}' is not a text, and Spark takes only texts here",
                document.values.get(("configuration", key)),
                fix=f"write it in quotes: '{value}'",
            )


def _patterns(document: Document) -> Iterator[tuple[int, str]]:
    libraries = document.data.get("libraries")
    for number, entry in enumerate(libraries if isinstance(libraries, list) else ()):
        inside: Any = entry.get("glob") if isinstance(entry, dict) else None
        if isinstance(inside, dict) and isinstance(inside.get("include"), str):
            yield number, inside["include"]


def _add(project: Project, document: Document, number: int, pattern: str) -> None:
    """Add the files of one pattern."""
    span = document.values.get(("libraries", number, "glob", "include"))
    whole = pattern.endswith("/**") and not glob.has_magic(pattern[:-3])
    if glob.has_magic(pattern) and not whole:
        project.findings.append(
            finding(
                "MS118",
                f"Spark does not take the pattern '{pattern}'",
                span,
                fix="name a file, or a folder with all that is in it: 'transformations/**'",
            )
        )
        return
    expression = f"{pattern}/*" if whole else pattern
    try:
        files = [
            one for one in project.folder.glob(expression) if one.is_file() and "__pycache__" not in one.parts
        ]
    except (NotImplementedError, ValueError):
        files = []
    if not files:
        project.findings.append(
            finding("MS118", f"no file is meant by '{pattern}'", span, fix="name files relative to the spec")
        )
    for file in sorted(files):
        if file.suffix in (".py", ".sql"):
            project.sources.append(file)
        else:
            said = f"'{shown(file)}' is neither Python nor SQL, and Spark takes nothing else"
            project.findings.append(finding("MS118", said, span, fix="leave it out of the pattern"))
