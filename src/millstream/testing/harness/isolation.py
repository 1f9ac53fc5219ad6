"""Isolate the pipeline of a case: redirect its checkpoint, dead letters and real sinks to a test location."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.connectors.api.values.sandbox import Sandbox
from millstream.engine.sink_keys import plain_sink_keys
from millstream.spec.location import Location
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.connectors.api.sink import Sink
    from millstream.pipeline.model import Pipeline


@dataclass(frozen=True)
class IsolatedCopy:
    """The isolated copy, its sink keys by the original keys, and the sinks that only collect rows."""

    pipeline: Pipeline
    query: str
    keys: dict[str, str]
    collecting_keys: frozenset[str]

    def key(self, name: str) -> str | None:
        """Return the copy's key of a sink by its original key, or by its kind if only one sink has that kind."""
        if name in self.keys:
            return self.keys[name]
        matching_keys = [new for old, new in self.keys.items() if old.partition(":")[0] == name]
        return matching_keys[0] if len(matching_keys) == 1 else None

    def real(self) -> Iterator[tuple[str, Sink]]:
        """Yield the sinks that really write, with the copy's key."""
        pairs = zip(self.keys.values(), self.pipeline.queries[self.query].to, strict=True)
        return ((key, entry.sink) for key, entry in pairs if key not in self.collecting_keys)


def isolate_pipeline(
    pipeline: Pipeline, query: str, folder: Path, prefix: str, *, real: bool
) -> IsolatedCopy:
    """Copy a pipeline for one query's test. All output goes below `folder`, or to names with `prefix`.

    Sinks collect rows unless `real`. Even then, sinks without a target, such as a console or a function, collect.
    """
    sandbox = Sandbox(folder, prefix)
    entries, collecting = [], []
    for entry in pipeline.queries[query].to:
        sink = entry.sink.in_sandbox(sandbox) if real else None
        collecting.append(sink is None)
        entries.append(entry if sink is None else entry.model_copy(update={"sink": sink}))
    update = {"to": tuple(entries), "checkpoint": None, "trigger": None}
    copy = pipeline.model_copy(
        update={
            "defaults": pipeline.defaults.model_copy(
                update={"checkpoints": Location(folder / "checkpoints"), "trigger": Trigger()}
            ),
            "queries": {**pipeline.queries, query: pipeline.queries[query].model_copy(update=update)},
            # Without a setting, dead letters are stored below the checkpoints.
            "dead_letters": None,
        }
    )
    keys = dict(zip(plain_sink_keys(pipeline, query), plain_sink_keys(copy, query), strict=True))
    collecting_keys = (
        key for key, is_collecting in zip(keys.values(), collecting, strict=True) if is_collecting
    )
    return IsolatedCopy(copy, query, keys, frozenset(collecting_keys))
