"""Load the pipelines of a test file: its own, with single values replaced, and later versions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Finding, Severity
from millstream.pipeline.load.document import YamlDocument
from millstream.pipeline.load.loader import load_data
from millstream.pipeline.load.variables import Variables
from millstream.pipeline.load.yaml_scalars import dump_value
from millstream.pipeline.spec_file import LoadedSpec, load_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from millstream.pipeline.load.document import Path as Place
    from millstream.pipeline.model import Pipeline
    from millstream.testing.files.parse_context import ParseContext

SPEC = "pipeline.yml"

# An override of a spec value: the dotted key, the value, and its path in the test file.
Laid = tuple[str, Any, "Place"]
_REPLACED = "replaced by --set "


class Specs:
    """Loads the pipelines of one test file, each version once, and adds findings to the parse context."""

    def __init__(self, ground: ParseContext, folder: Path, env: Callable[[Path], Mapping[str, str]]) -> None:
        self.ground, self.folder, self.env = ground, folder, env
        self.texts: dict[str, str] = {}
        self.files: set[Path] = set()
        self._pipeline_value: Any = None
        self._loaded: dict[tuple[Path | None, tuple[str, ...]], LoadedSpec] = {}

    def begin(self, value: Any) -> None:
        """Set the value of the key `pipeline`: a path, a whole spec, or None."""
        self._pipeline_value = value

    def load_pipeline(self, laid: tuple[Laid, ...] = ()) -> Pipeline | None:
        """Load the pipeline under test with overrides. Return None after findings."""
        value = self._pipeline_value
        if isinstance(value, dict):
            return self._load_once(None, laid)
        if value is None:
            file = find_nearest_spec(self.folder)
            if file is None:
                self.ground.add_finding(
                    "MS004",
                    f"the file names no pipeline, and no parent folder has a {SPEC}",
                    (),
                    fix="add 'pipeline: PATH' to the file",
                )
                return None
            return self._load_once(file, laid)
        if not isinstance(value, str):
            self.ground.add_type_finding("'pipeline'", "a path or a whole spec", value, ("pipeline",))
            return None
        return self.at(value, ("pipeline",), laid)

    def at(self, name: str, place: Place, laid: tuple[Laid, ...] = ()) -> Pipeline | None:
        """Load the pipeline in a file, whose path is relative to the test file's folder."""
        file = self.folder / name
        try:
            exists = (file / SPEC if file.is_dir() else file).is_file()
        except (OSError, ValueError):
            exists = False
        if not exists:
            message = f"there is no pipeline file '{name}'"
            self.ground.add_finding("MS003", message, place, fix="write a path relative to this test file")
            return None
        return self._load_once(file / SPEC if file.is_dir() else file, laid)

    def _load_once(self, file: Path | None, laid: tuple[Laid, ...]) -> Pipeline | None:
        """Return a pipeline with overrides, loaded on first use."""
        overrides = tuple(f"{key}={dump_value(value)}" for key, value, _ in laid)
        loaded = self._loaded.get((file, overrides))
        if loaded is None:
            loaded = (
                self._load_inline(overrides)
                if file is None
                else load_spec(file, self.env(file.parent), overrides)
            )
            self._loaded[(file, overrides)] = loaded
            self.texts.update({name: text for name, text in loaded.texts.items() if name not in self.texts})
            self.files |= {file} if file else set()
        path_of_override = {text: path for text, (_, _, path) in zip(overrides, laid, strict=True)}
        self.ground.findings += [
            self._locate_finding(problem, path_of_override) for problem in loaded.findings
        ]
        return None if loaded.has_errors else loaded.pipeline

    def _load_inline(self, overrides: tuple[str, ...]) -> LoadedSpec:
        """Load the spec that is written in the test file itself; spans point into the test file."""
        full_document = self.ground.document

        def below(places: Mapping[Place, Any]) -> dict[Place, Any]:
            return {place[1:]: value for place, value in places.items() if place[:1] == ("pipeline",)}

        document = YamlDocument(
            full_document.file,
            full_document.text,
            self._pipeline_value,
            below(full_document.values),
            below(full_document.keys),
            below(full_document.scalars),
        )
        variables = Variables(document, self.env(self.folder), self.folder)
        return load_data(document, variables.data, self.folder, full_document.file, overrides, {}, variables)

    def _locate_finding(self, problem: Finding, path_of_override: Mapping[str, Place]) -> Finding:
        """Point a finding about an override at the line of the test file that contains it."""
        if problem.label.startswith(_REPLACED):
            path = path_of_override.get(problem.label.removeprefix(_REPLACED))
            return replace(problem, label="", span=self.ground.span(path)) if path else problem
        if problem.code == "MS007" and problem.span is None:
            for text, path in path_of_override.items():
                key = text.partition("=")[0]
                if problem.message.startswith((f"--set {text}", f"--set {key}:")):
                    message = problem.message.removeprefix("--set ")
                    return replace(problem, message=message, span=self.ground.key(path))
        return problem


def find_nearest_spec(folder: Path) -> Path | None:
    """Return the pipeline.yml in a folder or its nearest parent, or None."""
    here = folder.resolve()
    return next((parent / SPEC for parent in (here, *here.parents) if (parent / SPEC).is_file()), None)


def has_errors(findings: list[Finding]) -> bool:
    """Return whether the findings contain an error."""
    return any(problem.severity is Severity.ERROR for problem in findings)
