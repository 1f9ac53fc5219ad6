"""Find the places of a spec whose data a container loses, because their path is outside of its volume."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from millstream.pipeline.load.variables import Variables
from millstream.pipeline.model import Defaults, LettersEntry, SinkEntry
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from millstream.pipeline.model import Pipeline
    from millstream.pipeline.spec_file import LoadedSpec

VOLUME = ".millstream"
"""The folder of the project that the manifests mount as a volume: it has the checkpoints."""


def find_local_checkpoints(loaded: LoadedSpec, folder: Path) -> tuple[str, ...]:
    """Return the path of each local folder of checkpoints outside of the volume, for a spec in this folder.

    A path with a variable that has no default is unknown, and is not included.
    """
    folder = folder.resolve()
    if (pipeline := loaded.pipeline) is not None:
        own = [query.checkpoint for query in pipeline.queries.values()]
        places: list[Any] = [pipeline.checkpoints, *own]
    else:
        data = _read_data(loaded, folder)
        defaults = data.get("defaults")
        common = defaults.get("checkpoints") if isinstance(defaults, dict) else None
        texts = [
            common or Defaults().checkpoints,
            *(query.get("checkpoint") for query in _list_entries(data, "queries")),
        ]
        places = [_resolve(text, folder) for text in texts]
    return tuple(dict.fromkeys(filter(None, (_find_outside(place, folder) for place in places))))


def find_local_sinks(loaded: LoadedSpec, folder: Path) -> tuple[str, ...]:
    """Return kind and path of each local sink outside of the volume, for a spec in this folder.

    The store of dead letters and folders of archived files are included, and a path with a variable that has no
    default is not.
    """
    folder = folder.resolve()
    if loaded.pipeline is not None:
        places = _list_places(loaded.pipeline)
    else:
        places = _list_places_of_data(_read_data(loaded, folder), folder)
    names = [f"{name} {path}" for name, place in places if (path := _find_outside(place, folder))]
    return tuple(dict.fromkeys(names))


def _list_places(pipeline: Pipeline) -> Iterator[tuple[str, Any]]:
    for query in pipeline.queries.values():
        yield from ((entry.sink.kind, getattr(entry.sink, "path", None)) for entry in query.to)
    if pipeline.dead_letters is not None:
        yield "dead letters", getattr(pipeline.letters, "path", None)
    for entry in pipeline.sources.values():
        yield "archived files", getattr(entry.source, "archive_to", None)


def _list_places_of_data(data: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the places of a document whose variables are open, except those that are invalid without a value."""
    context = {"folder": folder}
    for query in _list_entries(data, "queries"):
        entries = query.get("to")
        for entry in entries if isinstance(entries, list) else [entries]:
            try:
                sink = SinkEntry.model_validate(entry, context=context).sink
            except ValidationError:
                continue
            yield sink.kind, getattr(sink, "path", None)
    with suppress(ValidationError):
        letters = LettersEntry.model_validate(data.get("dead_letters"), context=context).box
        yield "dead letters", getattr(letters, "path", None)
    for source in _list_entries(data, "sources"):
        for settings in source.values():
            if isinstance(settings, dict):
                yield "archived files", _resolve(settings.get("archive_to"), folder)


def _read_data(loaded: LoadedSpec, folder: Path) -> Mapping[str, Any]:
    """Return the content of a document whose variables are open."""
    document = loaded.places.document
    data = None if document is None else Variables(document, {}, folder).data
    return data if isinstance(data, dict) else {}


def _list_entries(data: Mapping[str, Any], section: str) -> list[dict[str, Any]]:
    entries = data.get(section)
    values = entries.values() if isinstance(entries, dict) else ()
    return [entry for entry in values if isinstance(entry, dict)]


def _resolve(text: object, folder: Path) -> Location | None:
    """Return the location that a spec in this folder names by a text, or None for one that is invalid."""
    try:
        return TypeAdapter(Location).validate_python(text, context={"folder": folder})
    except ValidationError:
        return None


def _find_outside(place: object, folder: Path) -> str | None:
    """Return the path of a place, relative to the folder if it is inside, or None if it is not lost."""
    path = place.local if isinstance(place, Location) else None
    if path is None or "${" in str(path) or path.is_relative_to(folder / VOLUME):
        return None
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)
