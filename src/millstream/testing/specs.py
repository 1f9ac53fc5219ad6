"""The pipelines of a test file: its own, the same with single values replaced, and later versions of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Finding, Severity
from millstream.pipeline.document import Document
from millstream.pipeline.load import Loaded, load
from millstream.pipeline.loaded import load_data
from millstream.pipeline.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from millstream.pipeline.document import Path as Place
    from millstream.pipeline.model import Pipeline
    from millstream.testing.ground import Ground

SPEC = "pipeline.yml"

# Laid over a spec: the key with its dots, the value, and the place in the test file that says so.
Laid = tuple[str, Any, "Place"]
_REPLACED = "replaced by --set "


class Specs:
    """Loads the pipelines that one test file names, each version once; what is wrong goes to the ground."""

    def __init__(self, ground: Ground, folder: Path, env: Callable[[Path], Mapping[str, str]]) -> None:
        self.ground, self.folder, self.env = ground, folder, env
        self.texts: dict[str, str] = {}
        self.files: set[Path] = set()
        self._given: Any = None
        self._loaded: dict[tuple[Path | None, tuple[str, ...]], Loaded] = {}

    def begin(self, given: Any) -> None:
        """Say what stands under `pipeline`: a path, a whole spec, or nothing."""
        self._given = given

    def own(self, laid: tuple[Laid, ...] = ()) -> Pipeline | None:
        """The pipeline under test, with values laid over it; None when it has errors, which are told."""
        given = self._given
        if isinstance(given, dict):
            return self._get(None, laid)
        if given is None:
            file = nearest_spec(self.folder)
            if file is None:
                self.ground.tell(
                    "MS004",
                    f"no pipeline is named, and there is no {SPEC} in a folder above",
                    (),
                    fix="add 'pipeline: PATH' to the file",
                )
                return None
            return self._get(file, laid)
        if not isinstance(given, str):
            self.ground.not_this("'pipeline'", "a path or a whole spec", given, ("pipeline",))
            return None
        return self.at(given, ("pipeline",), laid)

    def at(self, name: str, place: Place, laid: tuple[Laid, ...] = ()) -> Pipeline | None:
        """The pipeline in a file, named from the test file's folder."""
        file = self.folder / name
        try:
            there = (file / SPEC if file.is_dir() else file).is_file()
        except (OSError, ValueError):
            there = False
        if not there:
            message = f"there is no pipeline file '{name}'"
            self.ground.tell("MS003", message, place, fix="name it from the folder of this file")
            return None
        return self._get(file / SPEC if file.is_dir() else file, laid)

    def _get(self, file: Path | None, laid: tuple[Laid, ...]) -> Pipeline | None:
        """A pipeline with values laid over it, loaded once."""
        overrides = tuple(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value, _ in laid)
        loaded = self._loaded.get((file, overrides))
        if loaded is None:
            loaded = self._inline(overrides) if file is None else load(file, self.env(file.parent), overrides)
            self._loaded[(file, overrides)] = loaded
            self.texts.update({name: text for name, text in loaded.texts.items() if name not in self.texts})
            self.files |= {file} if file else set()
        where = {text: place for text, (_, _, place) in zip(overrides, laid, strict=True)}
        self.ground.findings += [self._placed(found, where) for found in loaded.findings]
        return None if loaded.failed else loaded.pipeline

    def _inline(self, overrides: tuple[str, ...]) -> Loaded:
        """The spec that stands in the test file itself, each value at its place there."""
        whole = self.ground.document

        def below(places: Mapping[Place, Any]) -> dict[Place, Any]:
            return {place[1:]: value for place, value in places.items() if place[:1] == ("pipeline",)}

        document = Document(
            whole.file, whole.text, self._given, below(whole.values), below(whole.keys), below(whole.scalars)
        )
        variables = Variables(document, self.env(self.folder), self.folder)
        return load_data(document, variables.data, self.folder, whole.file, overrides, {}, variables)

    def _placed(self, found: Finding, where: Mapping[str, Place]) -> Finding:
        """A finding about a value that was laid over the spec, at the place that says so."""
        if found.label.startswith(_REPLACED):
            place = where.get(found.label.removeprefix(_REPLACED))
            return replace(found, label="", span=self.ground.span(place)) if place else found
        if found.code == "MS007" and found.span is None:
            for text, place in where.items():
                key = text.partition("=")[0]
                if found.message.startswith((f"--set {text}", f"--set {key}:")):
                    message = found.message.removeprefix("--set ")
                    return replace(found, message=message, span=self.ground.key(place))
        return found


def nearest_spec(folder: Path) -> Path | None:
    """The pipeline.yml in a folder or the nearest one above it."""
    here = folder.resolve()
    return next((one / SPEC for one in (here, *here.parents) if (one / SPEC).is_file()), None)


def errors(findings: list[Finding]) -> bool:
    """Is there an error among the findings?"""
    return any(found.severity is Severity.ERROR for found in findings)
