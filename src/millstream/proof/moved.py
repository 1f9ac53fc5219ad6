"""A copy of a pipeline that touches nothing of the user's: its own checkpoints, topics, tables and folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import WrongUse
from millstream.pipeline.graph import Graph
from millstream.proof.rows import drawn
from millstream.runtime.recording import sink_keys
from millstream.spec.location import Location
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.connectors.elsewhere import Place
    from millstream.pipeline.model import Pipeline, Query, SourceEntry


_OPTIONS = "spark.driver.extraJavaOptions"
# A driver lives for seconds: what the second compiler makes faster never pays, nor does collecting in threads.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_QUICK = {
    "spark.driver.memory": "1g",  # two drivers are there at a time
    "spark.sql.shuffle.partitions": "2",  # a batch's rows come from more than one task, and from few
    "spark.sql.codegen.wholeStage": "false",  # compiling it takes longer than doing without for a hundred rows
}


@dataclass(frozen=True)
class Moved:
    """The copy, the sources that must be fed, what of the original is not in it, and what its sinks are called."""

    pipeline: Pipeline
    fed: tuple[str, ...]
    notes: tuple[str, ...]
    names: dict[str, tuple[str, ...]]
    """For each query the sinks of the original, in the order of the copy's."""


def moved(pipeline: Pipeline, queries: Sequence[str], place: Place) -> Moved:
    """Copy these queries and what they read. Raises `WrongUse` for a source that cannot be fed."""
    notes: list[str] = []
    names: dict[str, tuple[str, ...]] = {}
    kept = {name: _query(name, pipeline, place, notes, names) for name in queries}
    kept = {name: query for name, query in kept.items() if query.to}
    if not kept:
        raise WrongUse("no sink is left to prove: " + "; ".join(notes), "choose other queries")
    graph = Graph.of(pipeline)
    needed = {name for query in kept for name in graph.behind(graph.writes.get(query, ""))}
    sources = {name: entry for name, entry in pipeline.sources.items() if name in needed}
    copies = {name: _source(name, entry, place) for name, entry in sources.items()}
    copy = pipeline.model_copy(
        update={
            "name": f"{pipeline.name}-proof",
            "spark": quick(pipeline.spark),
            "defaults": pipeline.defaults.model_copy(
                update={"checkpoints": Location(place.folder / "checkpoints"), "trigger": Trigger()}
            ),
            "sources": copies,
            "views": {name: view for name, view in pipeline.views.items() if name in needed},
            "queries": kept,
            # Beside the copy's checkpoints, whatever the original says.
            "dead_letters": None,
        }
    )
    written = {target for query in kept.values() for entry in query.to for target in entry.sink.writes_to()}
    fed: list[str] = []
    seen: set[frozenset[str]] = set()
    for name, entry in copies.items():
        reads = entry.source.reads_from()
        # What a query of the pipeline writes is not ours to fill, and a topic of two sources is filled once.
        if not entry.static and reads not in seen and not reads & written:
            _feedable(name, entry)
            fed.append(name)
            seen.add(reads)
    return Moved(copy, tuple(fed), tuple(notes), names)


def quick(given: Mapping[str, str | int | float | bool]) -> dict[str, str | int | float | bool]:
    """Spark's settings of a copy: the pipeline's own, over some by which a short life costs less."""
    java = " ".join(filter(None, (_JAVA, str(given.get(_OPTIONS, "")))))
    return {**_QUICK, **given, _OPTIONS: java}


def _query(
    name: str, pipeline: Pipeline, place: Place, notes: list[str], names: dict[str, tuple[str, ...]]
) -> Query:
    query = pipeline.queries[name]
    entries = []
    for key, entry in zip(sink_keys(pipeline, name), query.to, strict=True):
        sink = entry.sink.elsewhere(place)
        if not entry.sink.keeps:
            notes.append(f"{name}: {entry.sink.describe()} keeps no rows and is left out")
        elif entry.sink.functions():
            notes.append(
                f"{name}: {entry.sink.describe()} writes where its function says, which cannot be moved: left out"
            )
        elif sink is None:
            notes.append(f"{name}: {entry.sink.describe()} has no place of its own and is left out")
        else:
            names[name] = (*names.get(name, ()), key)
            entries.append(entry.model_copy(update={"sink": sink}))
    return query.model_copy(update={"to": tuple(entries), "checkpoint": None, "trigger": None})


def _source(name: str, entry: SourceEntry, place: Place) -> SourceEntry:
    """A table that is read once stays where it is: nobody writes to it."""
    if entry.static:
        return entry
    source = entry.source.elsewhere(place)
    if source is None:
        raise WrongUse(
            f"source '{name}' ({entry.source.describe()}) cannot be given rows of a proof",
            "prove queries of other sources: millstream prove QUERY",
        )
    return entry.model_copy(update={"source": source})


def _feedable(name: str, entry: SourceEntry) -> None:
    if not entry.source.fed or not drawn(entry):
        raise WrongUse(
            f"source '{name}' ({entry.source.describe()}) cannot be given rows of a proof",
            "prove queries of other sources: millstream prove QUERY"
            if drawn(entry)
            else f"declare its schema: sources.{name}.schema",
        )
