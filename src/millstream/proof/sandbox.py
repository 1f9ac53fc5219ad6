"""Copy a pipeline into a sandbox with separate checkpoints, topics, tables and folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import InvalidInput
from millstream.engine.sink_keys import sink_keys
from millstream.pipeline.graph import PipelineGraph
from millstream.proof.rows import generated_columns
from millstream.spec.location import Location
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.connectors.api.values.sandbox import Sandbox
    from millstream.pipeline.model import Pipeline, Query, SourceEntry


_OPTIONS = "spark.driver.extraJavaOptions"
# A driver lives for seconds, so neither the optimizing compiler nor parallel garbage collection pays off.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_QUICK = {
    "spark.driver.memory": "1g",  # two drivers run at a time
    "spark.sql.shuffle.partitions": "2",  # rows of a batch come from more than one task, but not from many
    "spark.sql.codegen.wholeStage": "false",  # compilation takes longer than it saves for a hundred rows
}


@dataclass(frozen=True)
class SandboxCopy:
    """The copied pipeline, the sources to feed, notes on what was left out, and the original names of its sinks."""

    pipeline: Pipeline
    fed_sources: tuple[str, ...]
    notes: tuple[str, ...]
    names: dict[str, tuple[str, ...]]
    """For each query the sinks of the original, in the order of the copy's sinks."""


def copy_to_sandbox(pipeline: Pipeline, queries: Sequence[str], sandbox: Sandbox) -> SandboxCopy:
    """Copy these queries and everything they read. Raises `InvalidInput` for a source that cannot be fed."""
    notes: list[str] = []
    names: dict[str, tuple[str, ...]] = {}
    queries_to_prove = {name: _query(name, pipeline, sandbox, notes, names) for name in queries}
    queries_to_prove = {name: query for name, query in queries_to_prove.items() if query.to}
    if not queries_to_prove:
        raise InvalidInput("no sink is left to prove: " + "; ".join(notes), "choose other queries")
    graph = PipelineGraph.of(pipeline)
    needed = {name for query in queries_to_prove for name in graph.behind(graph.writes.get(query, ""))}
    sources = {name: entry for name, entry in pipeline.sources.items() if name in needed}
    copies = {name: _source(name, entry, sandbox) for name, entry in sources.items()}
    copy = pipeline.model_copy(
        update={
            "name": f"{pipeline.name}-proof",
            "spark": quick_spark_settings(pipeline.spark),
            "defaults": pipeline.defaults.model_copy(
                update={"checkpoints": Location(sandbox.folder / "checkpoints"), "trigger": Trigger()}
            ),
            "sources": copies,
            "views": {name: view for name, view in pipeline.views.items() if name in needed},
            "queries": queries_to_prove,
            # A copy is killed on purpose: its alerts must not reach those who watch the original.
            "alerts": (),
            "alerts_to": None,
            # Next to the copy's checkpoints, regardless of the original's setting.
            "dead_letters": None,
        }
    )
    target_folders = {
        target
        for query in queries_to_prove.values()
        for entry in query.to
        for target in entry.sink.writes_to()
    }
    fed_sources: list[str] = []
    fed_places: set[frozenset[str]] = set()
    for name, entry in copies.items():
        reads = entry.source.reads_from()
        # A target that a query of the pipeline writes is not fed, and a topic shared by two sources is fed once.
        if not entry.static and reads not in fed_places and not reads & target_folders:
            _feedable(name, entry)
            fed_sources.append(name)
            fed_places.add(reads)
    return SandboxCopy(copy, tuple(fed_sources), tuple(notes), names)


def quick_spark_settings(
    settings: Mapping[str, str | int | float | bool],
) -> dict[str, str | int | float | bool]:
    """Return the copy's Spark settings: the pipeline's own, on top of some that make short runs cheaper."""
    java = " ".join(filter(None, (_JAVA, str(settings.get(_OPTIONS, "")))))
    return {**_QUICK, **settings, _OPTIONS: java}


def _query(
    name: str, pipeline: Pipeline, sandbox: Sandbox, notes: list[str], names: dict[str, tuple[str, ...]]
) -> Query:
    query = pipeline.queries[name]
    entries = []
    for key, entry in zip(sink_keys(pipeline, name), query.to, strict=True):
        sink = entry.sink.in_sandbox(sandbox)
        if not entry.sink.stores_rows:
            notes.append(f"{name}: {entry.sink.describe()} stores no rows and is left out")
        elif entry.sink.functions():
            notes.append(
                f"{name}: {entry.sink.describe()} writes where its function decides, which cannot be moved: left out"
            )
        elif sink is None:
            notes.append(f"{name}: {entry.sink.describe()} cannot write to another target and is left out")
        else:
            names[name] = (*names.get(name, ()), key)
            entries.append(entry.model_copy(update={"sink": sink}))
    return query.model_copy(update={"to": tuple(entries), "checkpoint": None, "trigger": None})


def _source(name: str, entry: SourceEntry, sandbox: Sandbox) -> SourceEntry:
    """Return a source that reads from the sandbox; a static table is read in place, because nothing writes to it."""
    if entry.static:
        return entry
    source = entry.source.in_sandbox(sandbox)
    if source is None:
        raise InvalidInput(
            f"source '{name}' ({entry.source.describe()}) cannot be fed with the rows of a proof",
            "prove queries of other sources: millstream prove QUERY",
        )
    return entry.model_copy(update={"source": source})


def _feedable(name: str, entry: SourceEntry) -> None:
    if not entry.source.is_feedable or not generated_columns(entry):
        raise InvalidInput(
            f"source '{name}' ({entry.source.describe()}) cannot be fed with the rows of a proof",
            "prove queries of other sources: millstream prove QUERY"
            if generated_columns(entry)
            else f"declare its schema: sources.{name}.schema",
        )
