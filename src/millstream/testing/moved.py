"""The pipeline of a case, moved to a place of its own: checkpoint, dead letters, and what real sinks write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.connectors.elsewhere import Place
from millstream.runtime.recording import sink_keys
from millstream.spec.location import Location
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.connectors.sink import Sink
    from millstream.pipeline.model import Pipeline


@dataclass(frozen=True)
class Moved:
    """The copy; its sinks' keys by those of the original, and which of them are only to collect."""

    pipeline: Pipeline
    query: str
    keys: dict[str, str]
    collecting: frozenset[str]

    def key(self, name: str) -> str | None:
        """The copy's key of a sink that is called by the original's key, or by its kind where that is one sink's."""
        if name in self.keys:
            return self.keys[name]
        kinds = [new for old, new in self.keys.items() if old.partition(":")[0] == name]
        return kinds[0] if len(kinds) == 1 else None

    def real(self) -> Iterator[tuple[str, Sink]]:
        """The sinks that write, by the copy's key."""
        pairs = zip(self.keys.values(), self.pipeline.queries[self.query].to, strict=True)
        return ((key, entry.sink) for key, entry in pairs if key not in self.collecting)


def moved(pipeline: Pipeline, query: str, folder: Path, prefix: str, *, real: bool) -> Moved:
    """Copy a pipeline for one query's test: all that is written goes below `folder`, or to names with `prefix`.

    Sinks collect rows unless `real`; then those still do that have no place of their own: a console, a function.
    """
    place = Place(folder, prefix)
    entries, collecting = [], []
    for entry in pipeline.queries[query].to:
        sink = entry.sink.elsewhere(place) if real else None
        collecting.append(sink is None)
        entries.append(entry if sink is None else entry.model_copy(update={"sink": sink}))
    update = {"to": tuple(entries), "checkpoint": None, "trigger": None}
    copy = pipeline.model_copy(
        update={
            "defaults": pipeline.defaults.model_copy(
                update={"checkpoints": Location(folder / "checkpoints"), "trigger": Trigger()}
            ),
            "queries": {**pipeline.queries, query: pipeline.queries[query].model_copy(update=update)},
            # Below the checkpoints, as where a spec says nothing.
            "dead_letters": None,
        }
    )
    keys = dict(zip(sink_keys(pipeline, query), sink_keys(copy, query), strict=True))
    chosen = (key for key, alone in zip(keys.values(), collecting, strict=True) if alone)
    return Moved(copy, query, keys, frozenset(chosen))
