"""Read the declarative pipelines of a Databricks bundle: the files of their libraries, and their settings."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ROOT_FILES = ("databricks.yml", "databricks.yaml", "bundle.yml", "bundle.yaml")
_RESOURCES = re.compile(r"^\s*resources\s*:", re.MULTILINE)
_PIPELINES = re.compile(r"^\s+pipelines\s*:", re.MULTILINE)
_LIBRARIES = re.compile(r"^\s+-?\s*libraries\s*:", re.MULTILINE)
_REFERENCE = re.compile(r"\$\{([\w.]+)\}")
_SUFFIXES = ("", ".py", ".sql", ".ipynb")
# The number of folders above a file that are searched for the root of its bundle.
_MOST_LEVELS = 6


@dataclass
class BundlePipelines:
    """The pipelines that a file of a bundle declares."""

    name: str = ""
    folder: Path | None = None
    """The folder from which their modules are imported."""
    sources: list[Path] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Files that a library names, and that are not here."""
    configuration: dict[str, str] = field(default_factory=dict)
    """The settings whose values are known."""
    catalog: str = ""
    database: str = ""


def declares_pipelines(text: str) -> bool:
    """Return whether a YAML text declares pipelines of a bundle."""
    return all(pattern.search(text) is not None for pattern in (_RESOURCES, _PIPELINES, _LIBRARIES))


def read_bundle(file: Path) -> BundlePipelines | None:
    """Return the pipelines that a file declares; None if it declares none, or cannot be read."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    pipelines = _mapping(_mapping(_read(text), "resources"), "pipelines") if declares_pipelines(text) else {}
    declared = [pipeline for pipeline in pipelines.values() if isinstance(pipeline, dict)]
    if not declared:
        return None
    root = next(
        (above for above in file.resolve().parents[:_MOST_LEVELS] if _is_root(above)), file.resolve().parent
    )
    known = {**_variables(root), "workspace.file_path": str(root), "bundle.sourcePath": str(root)}
    result = BundlePipelines(", ".join(map(str, pipelines)), root)
    for pipeline in declared:
        settings = _mapping(pipeline, "configuration").items()
        values = {str(key): _filled(str(value), known) for key, value in settings}
        result.configuration |= {key: value for key, value in values.items() if "${" not in value}
        result.catalog = result.catalog or _known_text(pipeline.get("catalog"), known)
        result.database = result.database or _known_text(
            pipeline.get("schema", pipeline.get("target")), known
        )
        place = _known_text(pipeline.get("root_path"), known)
        if place and (file.parent / place).is_dir():
            result.folder = (file.parent / place).resolve()
        _add_sources(result, file.parent, pipeline, known)
    return result


def _add_sources(
    result: BundlePipelines, folder: Path, pipeline: Mapping[str, Any], known: Mapping[str, str]
) -> None:
    libraries = pipeline.get("libraries")
    for library in libraries if isinstance(libraries, list) else ():
        entry = library if isinstance(library, dict) else {}
        pattern = _known_text(_mapping(entry, "glob").get("include"), known)
        named = _known_text(
            _mapping(entry, "notebook").get("path") or _mapping(entry, "file").get("path"), known
        )
        if pattern:
            files = sorted(_matches(folder, pattern))
        elif named:
            files = [path for suffix in _SUFFIXES if (path := folder / f"{named}{suffix}").is_file()][:1]
            result.missing += [] if files else [named]
        else:
            continue
        result.sources += [path for path in map(_resolve, files) if path not in result.sources]


def _matches(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the files of a pattern: `folder/**` and `folder/` mean all files below."""
    place, _, last = pattern.rpartition("/")
    below = (folder / place).resolve()
    try:
        files = list(below.rglob("*") if last in ("**", "", ".") else below.glob(last))
    except ValueError:
        # The pattern is not valid, and has no files.
        return
    for path in files:
        if path.is_file() and path.suffix in _SUFFIXES[1:] and "__pycache__" not in path.parts:
            yield path


def _variables(root: Path) -> dict[str, str]:
    """Return the values of a bundle's variables: those of its default target, else their defaults."""
    data: Any = next((_read_file(root / name) for name in ROOT_FILES if (root / name).is_file()), {})
    values = {
        f"var.{name}": settings.get("default")
        for name, settings in _mapping(data, "variables").items()
        if isinstance(settings, dict)
    }
    targets = _mapping(data, "targets")
    name = next((key for key, target in targets.items() if _mapping(targets, key).get("default")), None)
    name = next(iter(targets), None) if name is None else name
    values |= {f"var.{key}": value for key, value in _mapping(_mapping(targets, name), "variables").items()}
    values |= {"bundle.name": _mapping(data, "bundle").get("name"), "bundle.target": name}
    known = {key: str(value) for key, value in values.items() if isinstance(value, str | int | float)}
    # A variable may refer to another one.
    return {key: _filled(value, known) for key, value in known.items()}


def _filled(text: str, known: Mapping[str, str]) -> str:
    return _REFERENCE.sub(lambda reference: known.get(reference[1], reference[0]), text)


def _known_text(value: Any, known: Mapping[str, str]) -> str:
    """Return a value with its references filled in, or "" if one of them is not known."""
    text = _filled(value, known) if isinstance(value, str) else ""
    return "" if "${" in text else text


def _is_root(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ROOT_FILES)


def _read_file(file: Path) -> Any:
    try:
        return _read(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return {}


def _read(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return {}


def _mapping(data: Any, key: Any) -> dict[Any, Any]:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def _resolve(path: Path) -> Path:
    return path.resolve()
