"""Read the spec of a Spark declarative-pipelines project, and find the settings that Spark refuses."""

from __future__ import annotations

import glob
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from millstream.checking.bundles import read_bundle
from millstream.checking.compat.error_parser import split_message
from millstream.checking.targets import list_files_of_project
from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.introspection import find_nearest
from millstream.pipeline.load.document import YamlDocument, parse_yaml
from millstream.pipeline.spec_file import display_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql.conf import RuntimeConfig

    from millstream.checking.bundles import BundlePipelines
    from millstream.diagnostics.finding import Finding, Span

NAMES = ("spark-pipeline.yml", "spark-pipeline.yaml")
_KEYS = ("name", "storage", "catalog", "database", "schema", "configuration", "libraries")


@dataclass
class Project:
    """A project with the settings that could be read from its spec."""

    folder: Path
    file: str
    """The name of the spec in findings."""
    text: str
    name: str = ""
    has_spec: bool = True
    """False for the files of a folder, which may belong to several projects."""
    is_for_databricks: bool = False
    """True for the pipelines of a bundle, which only Databricks runs."""
    catalog: str = "spark_catalog"
    database: str = "default"
    configuration: dict[str, str] = field(default_factory=dict)
    configuration_spans: dict[str, Span] = field(default_factory=dict)
    """Where the values of `configuration` are in the spec."""
    sources: list[Path] = field(default_factory=list)
    """The files of its libraries, in the order in which Spark loads them."""
    findings: list[Finding] = field(default_factory=list)


def read_project_spec(spec: Path) -> Project:
    """Read a spec. Never raises for its contents: errors become `findings`.

    A Python file, a notebook or a file of SQL is taken for a project of that one file, a folder for one of the files
    in it that declare tables.
    """
    file = str(display_path(spec))
    if spec.is_dir():
        files = [path.resolve() for path in list_files_of_project(spec)]
        return Project(spec.resolve(), file, "", spec.name, has_spec=False, sources=files)
    if spec.suffix in (".py", ".ipynb", ".sql"):
        return Project(spec.parent.resolve(), file, "", spec.stem, has_spec=False, sources=[spec.resolve()])
    bundle = read_bundle(spec)
    if bundle is not None:
        return _bundle_project(spec, file, bundle)
    try:
        text = spec.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        unreadable = build_finding("MS001", f"the file cannot be read: {error}")
        return Project(spec.parent, file, "", findings=[unreadable])
    document = parse_yaml(file, text)
    project = Project(spec.parent.resolve(), file, text, findings=list(document.findings))
    if document.is_unreadable:
        return project
    if not isinstance(document.data, dict):
        project.findings.append(build_finding("MS001", "the spec is not a mapping of keys to values"))
        return project
    project.findings += _key_findings(document)
    data = document.data
    project.name = str(data.get("name", ""))
    project.catalog = str(data.get("catalog") or project.catalog)
    project.database = str(data.get("database", data.get("schema")) or project.database)
    configuration = data.get("configuration")
    if isinstance(configuration, dict):
        project.configuration = {str(key): str(value) for key, value in configuration.items()}
        spans = ((str(key), document.values.get(("configuration", key))) for key in configuration)
        project.configuration_spans = {key: span for key, span in spans if span is not None}
    for number, pattern in _patterns(document):
        _add_files(project, document, number, pattern)
    return project


def apply_configuration(project: Project, conf: RuntimeConfig) -> Iterator[Finding]:
    """Apply the settings of a project. Yield a finding for each value that Spark refuses."""
    for key, value in project.configuration.items():
        try:
            conf.set(key, value)
        except PySparkException as error:
            # The session of a pipeline starts with these settings, and the values of a template are filled in before.
            if str(error.getCondition()).startswith("CANNOT_MODIFY") or "${" in value:
                continue
            yield build_finding(
                "MS118",
                f"Spark refuses the value '{value}' of the setting '{key}'",
                project.configuration_spans.get(key),
                why=split_message(error)[0],
                fix="write a value that Spark accepts, or remove the setting",
            )


def _bundle_project(spec: Path, file: str, bundle: BundlePipelines) -> Project:
    project = Project(bundle.folder or spec.parent.resolve(), file, "", bundle.name, has_spec=False)
    project.is_for_databricks = True
    project.catalog, project.database = bundle.catalog or project.catalog, bundle.database or project.database
    project.configuration, project.sources = bundle.configuration, bundle.sources
    for name in bundle.missing:
        message = f"the bundle's pipeline names '{name}', and this file is not here"
        finding = build_finding("MS118", message, fix="name files relative to this one")
        project.findings.append(finding)
    return project


def _key_findings(document: YamlDocument) -> Iterator[Finding]:
    """Yield a finding for each key of a spec that Spark refuses."""
    for key in document.data:
        if key not in _KEYS:
            # Previews of Spark called them so.
            near = "libraries" if key == "definitions" else find_nearest(str(key), _KEYS)
            yield build_finding(
                "MS118",
                f"Spark does not know the key '{key}' in a pipeline spec",
                document.keys.get((key,)),
                fix=f"write '{near}'" if near else f"use one of {', '.join(_KEYS)}",
            )
    for key in ("name", "storage"):
        if key not in document.data:
            span = next(iter(document.keys.values()), None)
            yield build_finding(
                "MS118", f"the spec has no '{key}', and Spark requires one", span, fix=f"add '{key}: …'"
            )
    storage = document.data.get("storage")
    # A script may fill in the template of a spec.
    if isinstance(storage, str) and ":/" not in storage and "${" not in storage:
        yield build_finding(
            "MS118",
            "the storage is not an absolute path with a scheme",
            document.values.get(("storage",)),
            why="Spark refuses to run the pipeline: PIPELINE_STORAGE_ROOT_INVALID",
            fix="write file:///…, s3a://… or hdfs://…",
        )
    configuration = document.data.get("configuration") or {}
    for key, value in configuration.items() if isinstance(configuration, dict) else ():
        if not isinstance(value, str):
            yield build_finding(
                "MS118",
                f"the value of '{key}' is not a string, and Spark accepts only strings here",
                document.values.get(("configuration", key)),
                fix=f"write it in quotes: '{value}'",
            )


def _patterns(document: YamlDocument) -> Iterator[tuple[int, str]]:
    for key in ("libraries", "definitions"):
        libraries = document.data.get(key)
        for number, entry in enumerate(libraries if isinstance(libraries, list) else ()):
            inside: Any = next(iter(entry.values()), None) if isinstance(entry, dict) else None
            pattern = inside.get("include", inside.get("path")) if isinstance(inside, dict) else None
            if isinstance(pattern, str):
                yield number, pattern


def _add_files(project: Project, document: YamlDocument, number: int, pattern: str) -> None:
    """Add the files of one pattern."""
    span = document.values.get(("libraries", number, "glob", "include"))
    is_whole_folder = pattern.endswith("/**") and not glob.has_magic(pattern[:-3])
    if glob.has_magic(pattern) and not is_whole_folder:
        project.findings.append(
            build_finding(
                "MS118",
                f"Spark does not accept the pattern '{pattern}'",
                span,
                fix="name a file, or a whole folder: 'transformations/**'",
            )
        )
        return
    expression = f"{pattern}/*" if is_whole_folder else pattern
    try:
        files = [
            path
            for path in project.folder.glob(expression)
            if path.is_file() and "__pycache__" not in path.parts
        ]
    except (NotImplementedError, ValueError, IndexError):
        # What `glob` raises for an absolute pattern, for an invalid one and for ".". They are reported below.
        files = []
    if not files:
        project.findings.append(
            build_finding(
                "MS118", f"no file matches '{pattern}'", span, fix="name files relative to the spec"
            )
        )
    for file in sorted(files):
        if file.suffix in (".py", ".sql"):
            project.sources.append(file)
        else:
            message = f"'{display_path(file)}' is neither Python nor SQL, and Spark accepts nothing else"
            project.findings.append(build_finding("MS118", message, span, fix="exclude it from the pattern"))
