"""The sinks that a backfill is about, and which of them it may write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import WrongUse
from millstream.runtime.recording import sink_keys
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from millstream.backfill.wish import Wish
    from millstream.connectors.cut import Cut
    from millstream.connectors.sink import Sink
    from millstream.pipeline.model import Pipeline


@dataclass(frozen=True)
class Target:
    """One sink of a query as a backfill sees it. `key` is its name among the query's sinks."""

    query: str
    key: str
    sink: Sink
    mode: OutputMode
    side: bool
    """Is it another table than the query's own?"""

    @property
    def row_key(self) -> tuple[str, ...]:
        """The key by which a row replaces another; none where every row stands for itself."""
        return self.sink.row_key if self.sink.replaces(self.mode) else ()


def targets(pipeline: Pipeline, query: str, wish: Wish, cut: Cut, notes: list[str]) -> list[Target]:
    """The sinks of a query that are meant. Raises `WrongUse` for one that cannot be written as wished."""
    entries = pipeline.queries[query].to
    mode = pipeline.queries[query].output_mode
    if wish.sink is not None and wish.sink not in [entry.sink.kind for entry in entries]:
        known = ", ".join(entry.sink.kind for entry in entries)
        raise WrongUse(f"query '{query}' has no sink '{wish.sink}'", f"it writes to {known}")
    found = []
    for key, entry in zip(sink_keys(pipeline, query), entries, strict=True):
        if wish.sink is not None and entry.sink.kind != wish.sink:
            continue
        if not entry.sink.keeps:
            notes.append(f"{query}: {entry.sink.describe()} keeps no rows and is left out")
            continue
        sink = entry.sink if wish.into is None else _side(pipeline, query, entry.sink, wish.into)
        named = key if wish.into is None else f"{sink.kind}:{wish.into}"
        found.append(Target(query, named, sink, mode, wish.into is not None))
    if wish.into is not None and len(found) > 1:
        raise WrongUse(
            f"query '{query}' has {len(found)} sinks, and --into names one place", "choose one: --sink KIND"
        )
    for target in found:
        if not wish.compare:
            _writable(target, wish, cut)
    return found


def _writable(target: Target, wish: Wish, cut: Cut) -> None:
    """Raises `WrongUse` for a sink that a backfill cannot write as wished."""
    sink, said = target.sink, f"query '{target.query}': {target.sink.describe()}"
    cure = "choose another sink with --sink or another place with --into, or only look: --compare"
    if not target.side and target.mode is OutputMode.COMPLETE:
        raise WrongUse(f"{said} is replaced whole by each batch of the query", cure)
    if not target.side and (why := sink.apart(target.mode)):
        raise WrongUse(f"{said} takes no rows of a backfill: {why}", cure)
    if not wish.replace:
        return
    if cut.start is None and cut.end is None:
        raise WrongUse(
            "--replace needs a range: without one it would take away every row that the sources no longer explain",
            "add --from and --to",
        )
    if sink.replacing(cut) is None:
        raise WrongUse(
            f"{said} cannot take rows away by column {'.'.join(cut.path)}",
            "leave out --replace: what is missing is added",
        )


def _side(pipeline: Pipeline, query: str, sink: Sink, name: str) -> Sink:
    """The sink that writes to another place: a relative path starts at the spec's folder."""
    if "/" in name and "://" not in name:
        name = str(pipeline.folder / name)
    made = sink.into(name)
    if made is None:
        raise WrongUse(
            f"query '{query}': {sink.describe()} cannot write to another place", "choose a sink: --sink KIND"
        )
    return made
