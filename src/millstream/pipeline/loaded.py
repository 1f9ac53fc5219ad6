"""A spec's text or data to its model: variables, overrides, found views, and all that is wrong."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.finding import Finding, Severity, Span
from millstream.pipeline.describe import OURS
from millstream.pipeline.document import Document, read
from millstream.pipeline.document import Path as Place
from millstream.pipeline.entries import mismatches
from millstream.pipeline.found import Found, find
from millstream.pipeline.mistakes import Mistakes
from millstream.pipeline.model import Pipeline, SourceEntry
from millstream.pipeline.override import override
from millstream.pipeline.places import Places
from millstream.pipeline.stateful import oddities
from millstream.pipeline.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Loaded:
    """A spec as far as it could be read.

    `pipeline` is None when the model could not be built. `findings` are all there are, in file order.
    `texts` holds each file that was read, by the name findings call it.
    """

    pipeline: Pipeline | None
    findings: list[Finding]
    places: Places
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Is there an error among the findings?"""
        return any(found.severity is Severity.ERROR for found in self.findings)


def load_text(
    file: str, text: str, folder: Path, env: Mapping[str, str], overrides: Sequence[str] = ()
) -> Loaded:
    """Load a spec from its text, as if it stood in a file of that name in `folder`."""
    document = read(file, text)
    texts = {file: text}
    if document.unreadable:
        return Loaded(None, document.findings, Places(file, document), texts)
    if not isinstance(document.data, dict):
        said = finding("MS001", "a spec is keys with values", Span.point(file), fix="begin with 'name: …'")
        return Loaded(None, [*document.findings, said], Places(file, document), texts)
    variables = Variables(document, env, folder)
    return load_data(document, variables.data, folder, file, overrides, texts, variables)


def load_data(
    document: Document,
    data: dict[str, Any],
    folder: Path,
    file: str | None,
    overrides: Sequence[str],
    texts: Mapping[str, str],
    variables: Variables | None = None,
) -> Loaded:
    """Load a spec from its data: overrides, found views, the model, and all findings."""
    data, replaced, wrong = override(data, overrides)
    unset = [found for place, found in variables.unset if not _within(place, replaced)] if variables else []
    findings = [*document.findings, *wrong, *unset]
    _tidy(data)
    name = file or document.file
    places = Places(name, document)
    views = find(data, folder, places, shown(folder))
    findings += views.findings
    texts = {**texts, **views.texts}
    places = replace(places, sql_files=views.files, texts=texts)
    data = _with_views(data, views)
    written = variables.written if variables else {}
    written = {place: text for place, text in written.items() if not _within(place, replaced)}
    pipeline, mistakes = build(data, folder, file, Mistakes(data, places, written))
    # A value that is not known can only be wrong because it is not known.
    blamed = [found.span for found in unset]
    findings += [_told(found, replaced, places) for found in mistakes if not _covers(found.span, blamed)]
    return Loaded(None if unset else pipeline, in_file_order(findings, name), places, texts)


def build(
    data: dict[str, Any], folder: Path, file: str | None, mistakes: Mistakes
) -> tuple[Pipeline | None, list[Finding]]:
    """The model of a spec's data, or None; and all that is wrong with it."""
    findings = [mistakes.unknown((key,)) for key in data if key in OURS]
    given = {key: value for key, value in data.items() if key not in OURS}
    context = {"folder": folder.resolve()}
    pipeline = None
    try:
        pipeline = Pipeline.model_validate(
            {**given, "folder": folder.resolve(), "file": file}, context=context
        )
        sources = pipeline.sources
    except ValidationError as wrong:
        findings += mistakes.findings(wrong.errors(include_url=False, include_input=False))
        sources = _sound(given.get("sources"), context)
    for name, entry in sources.items():
        for odd in mismatches(name, entry):
            span = mistakes.places.value("sources", name, *odd.path)
            findings.append(finding(odd.code, odd.message, span, why=odd.why, fix=odd.fix))
    for name, view in pipeline.views.items() if pipeline else ():
        for wrong_view in oddities(name, view):
            place = ("views", name, *wrong_view.path)
            span = mistakes.places.value(*place) if wrong_view.path else mistakes.places.key(*place)
            told = finding(wrong_view.code, wrong_view.message, span, why=wrong_view.why, fix=wrong_view.fix)
            findings.append(told)
    return pipeline, findings


def shown(path: Path) -> Path:
    """A path as messages name it: from the working folder when it is inside."""
    try:
        return Path(os.path.relpath(path)) if path.resolve().is_relative_to(Path.cwd()) else path
    except OSError:
        return path


def in_file_order(findings: Sequence[Finding], first: str) -> list[Finding]:
    """Findings by file, the spec's own first, then by line and column; those without a place at the end."""

    def order(found: Finding) -> tuple[bool, bool, str, int, int, str]:
        span = found.span or Span.point("")
        return (found.span is None, span.file != first, span.file, span.line, span.column, found.code)

    return sorted(dict.fromkeys(findings), key=order)


def _tidy(data: dict[str, Any]) -> None:
    """Sections whose lines are all commented out count as absent."""
    for key in ("views", "params", "spark", "defaults"):
        if key in data and data[key] is None:
            del data[key]


def _with_views(data: dict[str, Any], found: Found) -> dict[str, Any]:
    """The data with the found views in it."""
    unusual = "views" in data and not isinstance(data["views"], dict)
    return data if unusual or not (found.views or "views" in data) else {**data, "views": found.views}


def _sound(sources: Any, context: dict[str, Any]) -> dict[str, SourceEntry]:
    """The sources that are right by themselves, when the whole spec is not."""
    sound = {}
    for name, entry in sources.items() if isinstance(sources, dict) else ():
        try:
            sound[name] = SourceEntry.model_validate(entry, context=context)
        except ValidationError:
            # Its errors are among the spec's own.
            continue
    return sound


def _within(place: Place, replaced: Mapping[Place, str]) -> bool:
    """Was the value at this place, or one around it, set on the command line?"""
    return any(place[:end] in replaced for end in range(len(place) + 1))


def _covers(span: Span | None, blamed: Sequence[Span | None]) -> bool:
    """Does a finding stand on a variable that has no value?"""
    return span is not None and any(
        other is not None
        and span.file == other.file
        and (span.line, span.column) <= (other.line, other.column)
        and (other.end_line, other.end_column) <= (span.end_line, span.end_column)
        for other in blamed
    )


def _told(found: Finding, replaced: Mapping[Place, str], places: Places) -> Finding:
    """A finding about an overridden value says so: the file does not show it."""
    for place, text in replaced.items():
        if found.span == places.value(*place) or found.span == places.key(*place):
            return replace(found, label=f"replaced by --set {text}")
    return found
