"""Run a pipeline: probe the world, lock the checkpoints, start every query, watch until the end."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.lock import CheckpointLock
from millstream.diagnostics.failure import MillstreamError, NotReady, WrongUse
from millstream.pipeline.graph import Graph
from millstream.pipeline.model import OnError
from millstream.runtime.assemble import assemble
from millstream.runtime.flowing import FlowingQuery, roomy
from millstream.runtime.gaps import lenient
from millstream.runtime.progress import Listener
from millstream.runtime.query import RunningQuery
from millstream.runtime.reports import reported
from millstream.runtime.supervisor import Supervisor
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import ExitStack

    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline
    from millstream.runtime.events import Events
    from millstream.runtime.gaps import Missing

# With as many queries as cores the first is alone for its first batch, so many seconds at most. What a JVM does only
# once, loading and compiling, is then done for all of them; else five queries' first rows come together and late.
HEAD_START = 20.0


@dataclass(frozen=True)
class RunOptions:
    """What of a pipeline is run, and how long."""

    select: tuple[str, ...] = ()
    """Queries to run; all unless given."""
    exclude: tuple[str, ...] = ()
    """Queries to leave out."""
    until_caught_up: bool = False
    """Read every source to where it stands at the start, then end."""
    seconds: float | None = None
    """End gracefully after this long."""
    repair: bool = False
    """Mend what may be mended in a damaged checkpoint."""
    accept_gap: bool = False
    """Go on without records that were deleted before they were read."""
    adopt: bool = False
    """Take over what sinks hold of other checkpoints of the same queries."""


def chosen(pipeline: Pipeline, options: RunOptions) -> list[str]:
    """The queries to run, in the spec's order. Raises `WrongUse` for a name that is no query."""
    for name in (*options.select, *options.exclude):
        if name not in pipeline.queries:
            raise WrongUse(f"there is no query '{name}'", f"the queries are {', '.join(pipeline.queries)}")
    wanted = options.select or tuple(pipeline.queries)
    left = [name for name in pipeline.queries if name in wanted and name not in options.exclude]
    if not left:
        raise WrongUse("no query is left to run", "leave out fewer with --exclude")
    return left


def probe(pipeline: Pipeline, queries: Sequence[str]) -> dict[str, dict[str, str]]:
    """Ask each source and sink of these queries whether it is there. Raises the first `NotReady`.

    Gives what each source said of itself, such as its topics' ids, by source. They are asked all at once,
    so that a server that does not answer costs its time-out only once.
    """
    graph = Graph.of(pipeline)
    sources = sorted({source for query in queries for source in graph.upstream(query)})
    # A sink whose batches may be set aside need not be there.
    sinks = [
        entry.sink
        for query in queries
        for entry in pipeline.queries[query].to
        if entry.on_error is not OnError.DEAD_LETTER
    ]
    with ThreadPoolExecutor(max_workers=8) as pool:
        told = {name: pool.submit(pipeline.sources[name].source.probe) for name in sources}
        asked = [pool.submit(sink.probe) for sink in sinks]
        for answer in asked:
            answer.result()
        return {name: answer.result() for name, answer in told.items()}


def lock(pipeline: Pipeline, queries: Sequence[str], held: ExitStack) -> None:
    """Take the lock of each query's checkpoint. Raises `CannotGoOn` with the owner's name."""
    for query in queries:
        folder = pipeline.checkpoint(query).local
        if folder is None:
            raise NotReady(
                f"checkpoint {pipeline.checkpoint(query)} is not on a file system of this machine",
                "name a local or mounted folder in defaults.checkpoints",
            )
        try:
            held.enter_context(CheckpointLock(folder, f"{pipeline.name}.{query}"))
        except OSError as refused:
            raise NotReady(
                f"checkpoint folder {folder} cannot be written: {refused.strerror}",
                "name a folder of yours in defaults.checkpoints",
            ) from refused


def run(
    spark: SparkSession,
    pipeline: Pipeline,
    options: RunOptions,
    events: Events,
    probed: dict[str, dict[str, str]],
    *,
    gaps: Mapping[str, Sequence[Missing]] = MappingProxyType({}),
    on_supervisor: Callable[[Supervisor], None] = lambda _: None,
) -> bool:
    """Run the chosen queries until they end, are asked to, or one gives up; True when none gave up.

    The caller has probed and holds the locks. `gaps` are those that queries may pass over, once.
    `on_supervisor` gets the supervisor before anything starts, so that a signal can ask it to end.
    """
    names = chosen(pipeline, options)
    listener = Listener(events)
    spark.streams.addListener(listener)
    try:
        passing = lenient(pipeline, gaps)
        flows = {} if options.until_caught_up else {name: pipeline.trigger(name).flows for name in names}
        if any(flows.values()):
            roomy(spark, pipeline, names, probed)
        passing_frames = _frames(spark, passing, [name for name in names if name in gaps], flows)
        frames = _frames(spark, pipeline, names, flows)
        queries = []
        for name in names:
            made = FlowingQuery if flows.get(name) else RunningQuery
            query = made(
                spark=spark,
                pipeline=pipeline,
                name=name,
                frame=frames[name],
                trigger=Trigger(available_now=True) if options.until_caught_up else pipeline.trigger(name),
                events=events,
                probed=probed,
                adopt=options.adopt,
            )
            if name in gaps:
                frame, gone = passing_frames[name], tuple(gaps[name])
                query = replace(query, pipeline=passing, frame=frame, gaps=gone, following=query)
            queries.append(query)
        alone = options.seconds is None and not any(flows.values()) and _crowded_anew(spark, pipeline, names)
        until = time.monotonic() + HEAD_START if alone else 0.0
        supervisor = Supervisor(queries, pipeline.defaults.retry, events, alone_until=until)
        on_supervisor(supervisor)
        fine = supervisor.run(options.seconds)
    finally:
        _drain(spark)
        spark.streams.removeListener(listener)
    return fine


def _frames(
    spark: SparkSession, pipeline: Pipeline, names: Sequence[str], flows: Mapping[str, str | None]
) -> dict[str, DataFrame]:
    """What each query writes; nothing is counted in passing where rows flow continuously."""
    found: dict[str, DataFrame] = {}
    for counted in (False, True):
        mine = [name for name in names if (flows.get(name) != "continuous") is counted]
        made = assemble(spark, pipeline, counted=counted) if mine else {}
        found |= {name: made[pipeline.reads(name)] for name in mine}
    return found


def _crowded_anew(spark: SparkSession, pipeline: Pipeline, names: Sequence[str]) -> bool:
    """Does a pipeline begin for the first time, with as many queries as there are tasks at a time?"""
    folder = pipeline.checkpoint(names[0]).local
    begun = folder is not None and Checkpoint(folder).planned() is not None
    return not begun and 1 < len(names) >= spark.sparkContext.defaultParallelism


def _drain(spark: SparkSession) -> None:
    """Wait until Spark's listener bus has handed over what it holds: the last batch's figures come late."""
    try:
        reported(spark)
    except Exception as gone:
        # A JVM that was killed answers nothing any more, in whatever way: one sentence in place of py4j's.
        raise MillstreamError(
            "Spark's JVM ended before the run did",
            "see the end of the run's log; the next start goes on where this one ended",
        ) from gone
