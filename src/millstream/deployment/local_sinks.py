"""Find the sinks of a spec whose data a container loses, because their path is outside of its volume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from millstream.pipeline.load.variables import Variables
from millstream.pipeline.model import SinkEntry
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.connectors.api.sink import Sink
    from millstream.pipeline.load.document import YamlDocument
    from millstream.pipeline.spec_file import LoadedSpec

VOLUME = ".millstream"
"""The folder of the project that the manifests mount as a volume: it has the checkpoints."""


def find_local_sinks(loaded: LoadedSpec, folder: Path) -> tuple[str, ...]:
    """Return kind and path of each sink with a local path outside of the volume, for a spec in this folder.

    A path with a variable that has no default is unknown, and is not included.
    """
    folder = folder.resolve()
    if loaded.pipeline is not None:
        sinks = [entry.sink for query in loaded.pipeline.queries.values() for entry in query.to]
    else:
        document = loaded.places.document
        sinks = list(_list_sinks(document, folder)) if document is not None else []
    names = []
    for sink in sinks:
        place = getattr(sink, "path", None)
        path = place.local if isinstance(place, Location) else None
        if path is None or "${" in str(path) or path.is_relative_to(folder / VOLUME):
            continue
        names.append(f"{sink.kind} {path.relative_to(folder) if path.is_relative_to(folder) else path}")
    return tuple(dict.fromkeys(names))


def _list_sinks(document: YamlDocument, folder: Path) -> Iterator[Sink]:
    """Yield the sinks of a document whose variables are open, except those that are invalid without a value."""
    data = Variables(document, {}, folder).data
    for query in _values(data, "queries"):
        entries = query.get("to") if isinstance(query, dict) else None
        for entry in entries if isinstance(entries, list) else [entries]:
            try:
                yield SinkEntry.model_validate(entry, context={"folder": folder}).sink
            except ValidationError:
                continue


def _values(data: Any, section: str) -> list[Any]:
    entries = data.get(section) if isinstance(data, dict) else None
    return list(entries.values()) if isinstance(entries, dict) else []
