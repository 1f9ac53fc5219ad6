"""Connect to every source and sink of a pipeline in parallel, with a time limit, and compare the checkpoints."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.checkpoint import metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.source import Source
from millstream.connectors.api.values.connectivity import CheckpointedSource, ConnectivityFinding
from millstream.diagnostics.failure import CheckpointError, NotReady, Outage, Unreachable
from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.spec_file import sort_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding, Span
    from millstream.pipeline.load.places import ValuePositions
    from millstream.pipeline.model import Pipeline
    from millstream.pipeline.spec_file import LoadedSpec

# Seconds that one source or sink may take. A server on the same network needs a fraction of a second; a connection
# that a firewall drops would take minutes.
PATIENCE = 10.0


@dataclass(frozen=True)
class ConnectivityReport:
    """The findings of all requests. `questions` requests were sent, and `unanswered` of them got no response."""

    findings: list[Finding]
    questions: int
    unanswered: int


@dataclass
class _Question:
    """One source or sink to connect to, its path in the spec, and the result."""

    path: tuple[str | int, ...]
    query: str | None
    ask: Callable[[], Iterable[ConnectivityFinding]]
    what: str
    remarks: list[ConnectivityFinding] = field(default_factory=list)
    failure: BaseException | None = None
    finished: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Connect, and store the findings or the error."""
        try:
            self.remarks = list(self.ask())
        except BaseException as error:  # noqa: BLE001 - reported or raised again by the waiting thread
            self.failure = error
        finally:
            self.finished.set()


def check_connectivity(loaded: LoadedSpec, queries: Sequence[PlannedQuery] = ()) -> ConnectivityReport:
    """Connect to every source and sink that a query uses, and compare the checkpoints, without changing anything.

    `queries` are the planned queries, whose columns are compared with those of the sinks. A server that does not
    answer within `PATIENCE` seconds is reported as unreachable, once per server.
    """
    pipeline = loaded.pipeline
    if pipeline is None:
        return ConnectivityReport([], 0, 0)
    checkpoints = _Checkpoints.of(pipeline)
    questions = [
        *_of_sources(pipeline, checkpoints),
        *_of_sinks(pipeline, queries),
        *_of_dead_letters(pipeline),
    ]
    for question in questions:
        # Not a pool, because a pool waits for its threads at the end, however long their server is silent.
        threading.Thread(target=question.run, name=f"ask {question.what}", daemon=True).start()
    until = time.monotonic() + PATIENCE
    for question in questions:
        question.finished.wait(max(0.0, until - time.monotonic()))
    results = [(question, _remarks(question)) for question in questions]
    silent = sum(any(remark.code == "MS560" for remark in remarks) for _, remarks in results)
    findings = list(_deduplicated(loaded.places, results)) + list(checkpoints.findings(loaded.places))
    return ConnectivityReport(sort_findings(findings, loaded.places.file), len(questions), silent)


def _of_sources(pipeline: Pipeline, checkpoints: _Checkpoints) -> Iterator[_Question]:
    graph = PipelineGraph.of(pipeline)
    for name, entry in pipeline.sources.items():
        readers = [query for query in graph.writes if name in graph.sources_of(query)]
        if not readers or not _has_server(entry.source, Source):
            continue
        known = [recorded for query in readers for recorded in checkpoints.of_source(query, name)]
        fresh = [] if entry.static else [query for query in readers if query not in checkpoints.started]

        def connect(
            name: str = name,
            known: Sequence[CheckpointedSource] = tuple(known),
            fresh: Sequence[str] = tuple(fresh),
        ) -> Iterable[ConnectivityFinding]:
            used = pipeline.sources[name]
            return used.source.ask(static=used.static, checkpoints=known, fresh=fresh)

        yield _Question(("sources", name, "source"), readers[0], connect, f"source '{name}'")


def _of_sinks(pipeline: Pipeline, queries: Sequence[PlannedQuery]) -> Iterator[_Question]:
    planned = {query.name: {column.name: column.type for column in query.root.columns} for query in queries}
    for query, entry in pipeline.queries.items():
        for number, sink in enumerate(entry.to):
            if not _has_server(sink.sink, Sink):
                continue

            def connect(query: str = query, number: int = number) -> Iterable[ConnectivityFinding]:
                used = pipeline.queries[query]
                return used.to[number].sink.ask(planned.get(query), used.output_mode)

            path = ("queries", query, "to", number, "sink")
            yield _Question(path, query, connect, f"sink {sink.sink.describe()} of query '{query}'")


def _of_dead_letters(pipeline: Pipeline) -> Iterator[_Question]:
    """Yield the dead-letter store, if the spec names one and any record may become a dead letter."""
    store = pipeline.letters
    if pipeline.dead_letters is None or not any(
        map(pipeline.may_write_dead_letters, (*pipeline.sources, *pipeline.views))
    ):
        return

    def connect() -> Iterable[ConnectivityFinding]:
        store.probe()
        return ()

    yield _Question(("dead_letters", "box"), None, connect, f"dead-letter store {store.describe()}")


def _has_server(kind: object, base: type) -> bool:
    """Return whether a kind has a server to connect to. A source of generated rows and a console sink have none."""
    return any(getattr(type(kind), name) is not getattr(base, name) for name in ("ask", "probe"))


def _remarks(question: _Question) -> list[ConnectivityFinding]:
    """Return the findings of one request. Raise any failure that is not about the server, because it is a bug."""
    if not question.finished.is_set():
        message = f"{question.what} does not answer within {PATIENCE:g} seconds"
        return [ConnectivityFinding("MS560", message, fix="start its server, or correct its address")]
    match question.failure:
        case None:
            return question.remarks
        case Unreachable() | Outage() as silent:
            return [ConnectivityFinding("MS560", silent.what, fix=silent.fix)]
        case NotReady() as absent:
            return [ConnectivityFinding("MS561", absent.what, fix=absent.fix)]
        case defect:
            raise defect


def _deduplicated(
    places: ValuePositions, results: Sequence[tuple[_Question, list[ConnectivityFinding]]]
) -> Iterator[Finding]:
    """Yield one finding per remark. A remark that several places share is reported at the first one."""
    reported: set[tuple[str, str]] = set()
    for question, remarks in results:
        for remark in remarks:
            if (remark.code, remark.message) in reported:
                continue
            reported.add((remark.code, remark.message))
            yield build_finding(
                remark.code,
                remark.message,
                _span(places, question, remark),
                severity=remark.severity,
                why=remark.why,
                fix=remark.fix,
                query=question.query,
            )


def _span(places: ValuePositions, question: _Question, remark: ConnectivityFinding) -> Span:
    if remark.field is None:
        return places.key(*question.path)
    inside = (remark.field,) if remark.key is None else (remark.field, remark.key)
    return places.value(*question.path, *inside)


@dataclass(frozen=True)
class _Checkpoints:
    """The checkpoints of a pipeline's queries, and the sources that each of them recorded."""

    pipeline: Pipeline
    started: dict[str, tuple[CheckpointedSource, ...]] = field(default_factory=dict)
    """The sources that each checkpoint recorded, by query, in the order of the plan."""
    broken: dict[str, CheckpointError] = field(default_factory=dict)

    @classmethod
    def of(cls, pipeline: Pipeline) -> _Checkpoints:
        """Read all checkpoints on this machine."""
        checkpoints = cls(pipeline)
        for query in pipeline.queries:
            folder = pipeline.checkpoint_folder(query)
            if not folder.is_dir():
                continue
            try:
                if (recorded := _recorded_sources(query, Checkpoint(folder))) is not None:
                    checkpoints.started[query] = recorded
            except CheckpointError as error:
                checkpoints.broken[query] = error
        return checkpoints

    def of_source(self, query: str, name: str) -> Iterator[CheckpointedSource]:
        """Yield what a query's checkpoint recorded of a source, once for each time that the plan reads it."""
        return (recorded for recorded in self.started.get(query, ()) if recorded.identity.get("name") == name)

    def findings(self, places: ValuePositions) -> Iterator[Finding]:
        """Yield a finding for each checkpoint that cannot be read or that was created with other sources."""
        graph = PipelineGraph.of(self.pipeline)
        for query, error in self.broken.items():
            yield build_finding("MS571", error.what, places.key("queries", query), fix=error.fix, query=query)
        for query, recorded in self.started.items():
            before = {source.identity["name"] for source in recorded if "name" in source.identity} - {"?"}
            after = {name for name in graph.sources_of(query) if not self.pipeline.sources[name].static}
            if not before or before == after:
                continue
            removed, added = sorted(before - after), sorted(after - before)
            changes = [f"no longer reads '{name}'" for name in removed] + [
                f"also reads '{name}'" for name in added
            ]
            yield build_finding(
                "MS571",
                f"the checkpoint of query '{query}' was created with other sources: it {' and '.join(changes)}",
                places.key("queries", query),
                why="Spark stores offsets by a source's position in the plan, and would mix them up",
                fix=f"give the source its former name, or start '{query}' with an empty checkpoint",
                query=query,
            )


def _recorded_sources(query: str, checkpoint: Checkpoint) -> tuple[CheckpointedSource, ...] | None:
    """Return what a checkpoint recorded of its sources, or None if no batch was ever planned."""
    newest = checkpoint.planned()
    if newest is None:
        return None
    planned = checkpoint.offsets(newest)
    offsets = planned.sources if planned else ()
    record = metadata.read(checkpoint.folder)
    sources = record.sources if record else ({},) * len(offsets)
    # The record and the offsets are both in the order of the plan.
    paired = offsets if len(offsets) == len(sources) else (None,) * len(sources)
    return tuple(
        CheckpointedSource(query, source, positions)
        for source, positions in zip(sources, paired, strict=True)
    )
