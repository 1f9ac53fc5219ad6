"""Build the model of a spec from its text or data: variables, overrides, discovered views and findings."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from millstream.diagnostics.finding import Finding, Severity, Span
from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.introspection import OURS
from millstream.pipeline.load.discovery import DiscoveredViews, discover_views
from millstream.pipeline.load.document import Path as Place
from millstream.pipeline.load.document import YamlDocument, parse_yaml
from millstream.pipeline.load.override import apply_overrides
from millstream.pipeline.load.places import ValuePositions
from millstream.pipeline.load.source_validation import find_mismatches
from millstream.pipeline.load.validation_errors import ValidationErrors
from millstream.pipeline.load.variables import Variables
from millstream.pipeline.model import Pipeline, SourceEntry
from millstream.pipeline.stateful import find_oddities

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class LoadedSpec:
    """The result of loading a spec.

    `pipeline` is None if the model could not be built. `findings` contains all findings in file order.
    `texts` contains each file that was read, by its name in findings.
    """

    pipeline: Pipeline | None
    findings: list[Finding]
    places: ValuePositions
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_errors(self) -> bool:
        """Whether there is an error among the findings."""
        return any(item.severity is Severity.ERROR for item in self.findings)


def load_text(
    file: str, text: str, folder: Path, env: Mapping[str, str], overrides: Sequence[str] = ()
) -> LoadedSpec:
    """Load a spec from its text, as if it were a file of that name in `folder`."""
    document = parse_yaml(file, text)
    texts = {file: text}
    if document.is_unreadable:
        return LoadedSpec(None, document.findings, ValuePositions(file, document), texts)
    if not isinstance(document.data, dict):
        error = build_finding(
            "MS001", "a spec must be a mapping", Span.point(file), fix="begin with 'name: …'"
        )
        return LoadedSpec(None, [*document.findings, error], ValuePositions(file, document), texts)
    variables = Variables(document, env, folder)
    return load_data(document, variables.data, folder, file, overrides, texts, variables)


def load_data(
    document: YamlDocument,
    data: dict[str, Any],
    folder: Path,
    file: str | None,
    overrides: Sequence[str],
    texts: Mapping[str, str],
    variables: Variables | None = None,
) -> LoadedSpec:
    """Load a spec from its data: apply overrides, discover views, build the model and collect findings."""
    data, replaced, override_errors = apply_overrides(data, overrides)
    unset = (
        [item for place, item in variables.unset if not _is_overridden(place, replaced)] if variables else []
    )
    findings = [*document.findings, *override_errors, *unset]
    _remove_empty_sections(data)
    name = file or document.file
    places = ValuePositions(name, document)
    views = discover_views(data, folder, places, display_path(folder))
    findings += views.findings
    texts = {**texts, **views.texts}
    places = replace(places, sql_files=views.files, texts=texts)
    data = _with_views(data, views)
    replaced_values = variables.replaced if variables else {}
    replaced_values = {
        place: text for place, text in replaced_values.items() if not _is_overridden(place, replaced)
    }
    pipeline, mistakes = build_pipeline(data, folder, file, ValidationErrors(data, places, replaced_values))
    # An error in the value of an unset variable is only a consequence.
    unset_spans = [item.span for item in unset]
    findings += [
        _mark_overridden(item, replaced, places)
        for item in mistakes
        if not _covers_any(item.span, unset_spans)
    ]
    return LoadedSpec(None if unset else pipeline, sort_findings(findings, name), places, texts)


def build_pipeline(
    data: dict[str, Any], folder: Path, file: str | None, mistakes: ValidationErrors
) -> tuple[Pipeline | None, list[Finding]]:
    """Build the model of a spec's data, or None if it is invalid, and collect its findings."""
    findings = [mistakes.unknown((key,)) for key in data if key in OURS]
    settings = {key: value for key, value in data.items() if key not in OURS}
    context = {"folder": folder.resolve()}
    pipeline = None
    try:
        pipeline = Pipeline.model_validate(
            {**settings, "folder": folder.resolve(), "file": file}, context=context
        )
        sources = pipeline.sources
    except ValidationError as error:
        findings += mistakes.findings(error.errors(include_url=False, include_input=False))
        sources = _valid_sources(settings.get("sources"), context)
    for name, entry in sources.items():
        for mismatch in find_mismatches(name, entry):
            span = mistakes.places.value("sources", name, *mismatch.path)
            findings.append(
                build_finding(mismatch.code, mismatch.message, span, why=mismatch.why, fix=mismatch.fix)
            )
    for name, view in pipeline.views.items() if pipeline else ():
        for oddity in find_oddities(name, view):
            place = ("views", name, *oddity.path)
            span = mistakes.places.value(*place) if oddity.path else mistakes.places.key(*place)
            view_finding = build_finding(oddity.code, oddity.message, span, why=oddity.why, fix=oddity.fix)
            findings.append(view_finding)
    return pipeline, findings


def display_path(path: Path) -> Path:
    """Return a path as messages name it: relative if it is inside the working folder."""
    try:
        return Path(os.path.relpath(path)) if path.resolve().is_relative_to(Path.cwd()) else path
    except OSError:
        return path


def sort_findings(findings: Sequence[Finding], first: str) -> list[Finding]:
    """Sort findings by file (that of the spec first), line and column; findings without a position come last."""

    def sort_key(item: Finding) -> tuple[bool, bool, str, int, int, str]:
        span = item.span or Span.point("")
        return (item.span is None, span.file != first, span.file, span.line, span.column, item.code)

    return sorted(dict.fromkeys(findings), key=sort_key)


def _remove_empty_sections(data: dict[str, Any]) -> None:
    """Remove empty sections: a section whose lines are all commented out counts as absent."""
    for key in ("views", "params", "spark", "defaults"):
        if key in data and data[key] is None:
            del data[key]


def _with_views(data: dict[str, Any], discovered: DiscoveredViews) -> dict[str, Any]:
    """Return the data with the discovered views."""
    is_malformed = "views" in data and not isinstance(data["views"], dict)
    return (
        data
        if is_malformed or not (discovered.views or "views" in data)
        else {**data, "views": discovered.views}
    )


def _valid_sources(sources: Any, context: dict[str, Any]) -> dict[str, SourceEntry]:
    """Return the sources that are valid by themselves, although the spec as a whole is not."""
    valid = {}
    for name, entry in sources.items() if isinstance(sources, dict) else ():
        try:
            valid[name] = SourceEntry.model_validate(entry, context=context)
        except ValidationError:
            # Its errors are already among those of the spec.
            continue
    return valid


def _is_overridden(place: Place, replaced: Mapping[Place, str]) -> bool:
    """Return whether the value at this path, or one that contains it, was set on the command line."""
    return any(place[:end] in replaced for end in range(len(place) + 1))


def _covers_any(span: Span | None, spans: Sequence[Span | None]) -> bool:
    """Return whether a finding's span contains a variable without a value."""
    return span is not None and any(
        other is not None
        and span.file == other.file
        and (span.line, span.column) <= (other.line, other.column)
        and (other.end_line, other.end_column) <= (span.end_line, span.end_column)
        for other in spans
    )


def _mark_overridden(item: Finding, replaced: Mapping[Place, str], places: ValuePositions) -> Finding:
    """Label a finding about an overridden value, because the file does not show that value."""
    for place, text in replaced.items():
        if item.span == places.value(*place) or item.span == places.key(*place):
            return replace(item, label=f"replaced by --set {text}")
    return item
