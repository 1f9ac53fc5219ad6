"""Asks the world about a pipeline: every source, sink and checkpoint at once, each for a bounded time."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.checkpoint import record as records
from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.asking import Begun, Remark
from millstream.connectors.sink import Sink
from millstream.connectors.source import Source
from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.failure import CannotGoOn, NotReady, Outage, Silent
from millstream.pipeline.graph import Graph
from millstream.pipeline.load import in_file_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding, Span
    from millstream.pipeline.load import Loaded
    from millstream.pipeline.model import Pipeline
    from millstream.pipeline.places import Places

# Seconds that one source or sink may take. A server on the same network needs a small part of one; a connection
# that a firewall swallows would take minutes.
PATIENCE = 10.0


@dataclass(frozen=True)
class Asked:
    """What the world said. `questions` were asked, and to `unanswered` of them nobody answered."""

    findings: list[Finding]
    questions: int
    unanswered: int


@dataclass
class _Question:
    """One source or sink that is asked, where it stands, and what came of it."""

    path: tuple[str | int, ...]
    query: str | None
    ask: Callable[[], Iterable[Remark]]
    what: str
    remarks: list[Remark] = field(default_factory=list)
    failure: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Ask, and keep what is said or raised."""
        try:
            self.remarks = list(self.ask())
        except BaseException as raised:  # noqa: BLE001 - told, or raised again, by the thread that waits
            self.failure = raised
        finally:
            self.done.set()


def ask(loaded: Loaded, queries: Sequence[PlannedQuery] = ()) -> Asked:
    """Ask about every source and sink that a query uses, and compare the checkpoints; changes nothing.

    `queries` are the planned ones, whose columns sinks are compared with. One that does not answer within
    `PATIENCE` seconds is told as out of reach, and each server only once.
    """
    pipeline = loaded.pipeline
    if pipeline is None:
        return Asked([], 0, 0)
    begun = _Begun.of(pipeline)
    questions = [*_of_sources(pipeline, begun), *_of_sinks(pipeline, queries), *_of_letters(pipeline)]
    for question in questions:
        # Not a pool: its threads would be waited for at the end, however long their server is silent.
        threading.Thread(target=question.run, name=f"ask {question.what}", daemon=True).start()
    until = time.monotonic() + PATIENCE
    for question in questions:
        question.done.wait(max(0.0, until - time.monotonic()))
    told = [(question, _answer(question)) for question in questions]
    silent = sum(any(remark.code == "MS560" for remark in said) for _, said in told)
    found = list(_once(loaded.places, told)) + list(begun.findings(loaded.places))
    return Asked(in_file_order(found, loaded.places.file), len(questions), silent)


def _of_sources(pipeline: Pipeline, begun: _Begun) -> Iterator[_Question]:
    graph = Graph.of(pipeline)
    for name, entry in pipeline.sources.items():
        readers = [query for query in graph.writes if name in graph.upstream(query)]
        if not readers or not _asks(entry.source, Source):
            continue
        known = [one for query in readers for one in begun.of_source(query, name)]
        fresh = [] if entry.static else [query for query in readers if query not in begun.started]

        def put(
            name: str = name, known: Sequence[Begun] = tuple(known), fresh: Sequence[str] = tuple(fresh)
        ) -> Iterable[Remark]:
            held = pipeline.sources[name]
            return held.source.ask(static=held.static, begun=known, fresh=fresh)

        yield _Question(("sources", name, "source"), readers[0], put, f"source '{name}'")


def _of_sinks(pipeline: Pipeline, queries: Sequence[PlannedQuery]) -> Iterator[_Question]:
    planned = {query.name: {column.name: column.type for column in query.root.columns} for query in queries}
    for query, entry in pipeline.queries.items():
        for number, sink in enumerate(entry.to):
            if not _asks(sink.sink, Sink):
                continue

            def put(query: str = query, number: int = number) -> Iterable[Remark]:
                asked = pipeline.queries[query]
                return asked.to[number].sink.ask(planned.get(query), asked.output_mode)

            path = ("queries", query, "to", number, "sink")
            yield _Question(path, query, put, f"sink {sink.sink.describe()} of query '{query}'")


def _of_letters(pipeline: Pipeline) -> Iterator[_Question]:
    """The place of dead letters, where the spec names one and anything may be set aside."""
    box = pipeline.letters
    if pipeline.dead_letters is None or not any(
        map(pipeline.sets_aside, (*pipeline.sources, *pipeline.views))
    ):
        return

    def put() -> Iterable[Remark]:
        box.probe()
        return ()

    yield _Question(("dead_letters", "box"), None, put, f"place of dead letters {box.describe()}")


def _asks(kind: object, base: type) -> bool:
    """Has a kind anybody to ask? One that makes rows from the clock, or prints them, has not."""
    return any(getattr(type(kind), name) is not getattr(base, name) for name in ("ask", "probe"))


def _answer(question: _Question) -> list[Remark]:
    """What came of a question. A failure that is no answer is a defect of ours and is raised."""
    if not question.done.is_set():
        said = f"{question.what} does not answer within {PATIENCE:g} seconds"
        return [Remark("MS560", said, fix="start its server, or correct its address")]
    match question.failure:
        case None:
            return question.remarks
        case Silent() | Outage() as silent:
            return [Remark("MS560", silent.what, fix=silent.fix)]
        case NotReady() as absent:
            return [Remark("MS561", absent.what, fix=absent.fix)]
        case defect:
            raise defect


def _once(places: Places, told: Sequence[tuple[_Question, list[Remark]]]) -> Iterator[Finding]:
    """A finding a remark; what a server says of itself is told at the first place that needs it."""
    seen: set[tuple[str, str]] = set()
    for question, remarks in told:
        for remark in remarks:
            if (remark.code, remark.message) in seen:
                continue
            seen.add((remark.code, remark.message))
            yield finding(
                remark.code,
                remark.message,
                _span(places, question, remark),
                severity=remark.severity,
                why=remark.why,
                fix=remark.fix,
                query=question.query,
            )


def _span(places: Places, question: _Question, remark: Remark) -> Span:
    if remark.field is None:
        return places.key(*question.path)
    inside = (remark.field,) if remark.key is None else (remark.field, remark.key)
    return places.value(*question.path, *inside)


@dataclass(frozen=True)
class _Begun:
    """The checkpoints of a pipeline's queries: which there are, and what they know."""

    pipeline: Pipeline
    started: dict[str, tuple[Begun, ...]] = field(default_factory=dict)
    """For each query with a checkpoint what it knows of each source, in the order of its plan."""
    broken: dict[str, CannotGoOn] = field(default_factory=dict)

    @classmethod
    def of(cls, pipeline: Pipeline) -> _Begun:
        """Read all that are on this machine."""
        made = cls(pipeline)
        for query in pipeline.queries:
            folder = pipeline.checkpoint(query).local
            if folder is None or not folder.is_dir():
                continue
            try:
                if (known := _known(query, Checkpoint(folder))) is not None:
                    made.started[query] = known
            except CannotGoOn as torn:
                made.broken[query] = torn
        return made

    def of_source(self, query: str, name: str) -> Iterator[Begun]:
        """What a query's checkpoint knows of a source; more than once where the plan reads it more than once."""
        return (one for one in self.started.get(query, ()) if one.told.get("name") == name)

    def findings(self, places: Places) -> Iterator[Finding]:
        """Checkpoints that cannot be read, or began with other sources than their query has."""
        graph = Graph.of(self.pipeline)
        for query, torn in self.broken.items():
            yield finding("MS571", torn.what, places.key("queries", query), fix=torn.fix, query=query)
        for query, known in self.started.items():
            before = {one.told["name"] for one in known if "name" in one.told} - {"?"}
            after = {name for name in graph.upstream(query) if not self.pipeline.sources[name].static}
            if not before or before == after:
                continue
            gone, come = sorted(before - after), sorted(after - before)
            changes = [f"reads '{name}' no more" for name in gone] + [
                f"reads '{name}' besides" for name in come
            ]
            yield finding(
                "MS571",
                f"the checkpoint of query '{query}' began with other sources: it {' and '.join(changes)}",
                places.key("queries", query),
                why="Spark keeps offsets by the position of a source in the plan, and gives them to the wrong one",
                fix=f"name the source as before, or start '{query}' with an empty checkpoint",
                query=query,
            )


def _known(query: str, checkpoint: Checkpoint) -> tuple[Begun, ...] | None:
    """What a checkpoint knows of its sources; None when no batch was ever planned."""
    newest = checkpoint.planned()
    if newest is None:
        return None
    planned = checkpoint.offsets(newest)
    offsets = planned.sources if planned else ()
    record = records.read(checkpoint.folder)
    told = record.sources if record else ({},) * len(offsets)
    # The record and the offsets are both in the order of the plan.
    paired = offsets if len(offsets) == len(told) else (None,) * len(told)
    return tuple(Begun(query, one, at) for one, at in zip(told, paired, strict=True))
