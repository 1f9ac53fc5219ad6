"""Run a pipeline: check its connections, lock its checkpoints, start its queries and watch them until the end."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.lock import CheckpointLock
from millstream.checkpoint.private_folder import is_private, make_private
from millstream.checkpoint.remote.path import RemotePath
from millstream.diagnostics.failure import InvalidInput, MillstreamError, NotReady, Unreachable
from millstream.engine.continuous_query import FlowingQuery, require_enough_cores
from millstream.engine.delivery.batch_spool import spool_folders
from millstream.engine.delivery.undelivered import warn_of_spooled
from millstream.engine.events.listener_bus import wait_for_reports
from millstream.engine.events.progress_listener import Listener
from millstream.engine.open_files_watch import OpenFilesWatch, watch_files
from millstream.engine.recovery.data_loss import ignore_data_loss
from millstream.engine.recovery.jvm_lock import lock_in_jvm
from millstream.engine.recovery.restart_check import check_restarts
from millstream.engine.state_memory_watch import watch_state
from millstream.engine.streaming_query import RunningQuery
from millstream.engine.supervisor import Supervisor
from millstream.frames.build_views import build_frames
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.model import OnError
from millstream.spark import internals
from millstream.spark.session import explain_lost_jvm
from millstream.spark.settings import require_file_manager
from millstream.spark.streaming.idle_polling import poll_less_often
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import ExitStack

    from pyspark.sql import DataFrame, SparkSession

    from millstream.engine.events.event_bus import EventBus
    from millstream.engine.recovery.data_loss import MissingOffsets
    from millstream.pipeline.model import Pipeline

Probed = TypeVar("Probed")
# With at least as many queries as cores, the first query runs alone for its first batch, at most this many seconds.
# The JVM then loads and compiles classes once for all; otherwise the first rows of five queries all come late.
HEAD_START = 20.0


@dataclass(frozen=True)
class RunOptions:
    """The options of a run: its queries, how long it lasts, and what it may repair or skip."""

    select: tuple[str, ...] = ()
    """Queries to run. Empty means all."""
    exclude: tuple[str, ...] = ()
    """Queries to leave out."""
    until_caught_up: bool = False
    """Read every source up to its end at the start of the run, then end."""
    seconds: float | None = None
    """End gracefully this long after the first committed batch."""
    repair: bool = False
    """Repair a damaged checkpoint where that is safe."""
    accept_gap: bool = False
    """Continue without records that were deleted before they were read."""
    adopt: bool = False
    """Continue from sink state that other checkpoints of the same queries wrote."""
    accept: tuple[str, ...] = ()
    """Codes of verdicts on changed queries, with which they start anyway."""


def choose_queries(pipeline: Pipeline, options: RunOptions) -> list[str]:
    """Return the queries to run, in the spec's order. Raises `InvalidInput` for a name that is not a query."""
    for name in (*options.select, *options.exclude):
        if name not in pipeline.queries:
            raise InvalidInput(
                f"there is no query '{name}'", f"the queries are {', '.join(pipeline.queries)}"
            )
    selected = options.select or tuple(pipeline.queries)
    names = [name for name in pipeline.queries if name in selected and name not in options.exclude]
    if not names:
        raise InvalidInput("no query is left to run", "exclude fewer queries with --exclude")
    return names


def probe_connections(pipeline: Pipeline, queries: Sequence[str]) -> dict[str, dict[str, str]]:
    """Check that each source and sink of these queries can be reached. Raises the first `NotReady`.

    Returns what each source reported about itself, such as its topics' ids, by source name. All are contacted at the
    same time, so that several servers that do not respond cost one time-out together.
    """
    graph = PipelineGraph.of(pipeline)
    sources = sorted({source for query in queries for source in graph.sources_of(query)})
    # A sink with `on_error: dead_letter` may be offline, because its batches can be spooled.
    sinks = {
        ("queries", query, "to", number, "sink"): entry.sink
        for query in queries
        for number, entry in enumerate(pipeline.queries[query].to)
        if entry.on_error is not OnError.DEAD_LETTER
    }
    with ThreadPoolExecutor(max_workers=8) as pool:
        source_probes = {name: pool.submit(pipeline.sources[name].source.probe) for name in sources}
        sink_probes = {path: pool.submit(sink.probe) for path, sink in sinks.items()}
        for path, probe in sink_probes.items():
            _await_probe(probe, path)
        return {name: _await_probe(probe, ("sources", name)) for name, probe in source_probes.items()}


def _await_probe(probe: Future[Probed], path: tuple[str | int, ...]) -> Probed:
    """Return the result of a probe. An error gets the part of the spec that it is about."""
    try:
        return probe.result()
    except MillstreamError as error:
        error.path = path
        raise


def lock_checkpoints(pipeline: Pipeline, queries: Sequence[str], locks: ExitStack) -> None:
    """Take the lock of each query's checkpoint. Raises `CheckpointError` with the name of the lock's owner."""
    try:
        _make_folders_private(pipeline)
    except OSError as error:
        raise NotReady(
            f"folder {pipeline.checkpoints} cannot be created: {error.strerror}",
            "set defaults.checkpoints to a folder that you may write to",
        ) from error
    if not queries:
        return
    first, *others = (_create_lock(pipeline, query) for query in queries)
    # Of two runs that start at the same time, the one that gets the first lock gets all. To wait for the leases of a
    # driver that has died takes as long for all of them as for one.
    locks.callback(_take(first).release)
    with ThreadPoolExecutor(max_workers=len(others) or 1) as pool:
        taken = [pool.submit(_take, lock) for lock in others]
    for future in taken:
        if future.exception() is None:
            locks.callback(future.result().release)
    for future in taken:
        future.result()


def _create_lock(pipeline: Pipeline, query: str) -> CheckpointLock:
    folder = pipeline.checkpoint_folder(query)
    return CheckpointLock(folder, f"{pipeline.name}.{query}", spool_folders(folder, query))


def _take(lock: CheckpointLock) -> CheckpointLock:
    try:
        lock.take()
    except ConnectionError as error:
        raise Unreachable(
            f"the file system of checkpoint folder {lock.folder} does not answer: {error.strerror}",
            "start it, or correct the address in defaults.checkpoints",
        ) from error
    except OSError as error:
        raise NotReady(
            f"checkpoint folder {lock.folder} cannot be written: {error.strerror}",
            "set defaults.checkpoints to a folder that you may write to",
        ) from error
    return lock


def _make_folders_private(pipeline: Pipeline) -> None:
    """Close the folders next to the checkpoints to other users. A checkpoint's own folder is closed with its lock.

    An existing checkpoints folder outside of `.millstream` stays open, because it may contain other files too.
    """
    folder = pipeline.checkpoints_folder
    if isinstance(folder, RemotePath):
        return
    if is_private(folder) or not folder.exists():
        make_private(folder)
    if pipeline.dead_letters is None and any(
        map(pipeline.may_write_dead_letters, (*pipeline.sources, *pipeline.views))
    ):
        make_private(Path(pipeline.letters.target()))


def run_pipeline(
    spark: SparkSession,
    pipeline: Pipeline,
    options: RunOptions,
    events: EventBus,
    probed: dict[str, dict[str, str]],
    *,
    gaps: Mapping[str, Sequence[MissingOffsets]] = MappingProxyType({}),
    on_supervisor: Callable[[Supervisor], None] = lambda _: None,
) -> bool:
    """Run the chosen queries until they end, are asked to end, or one gives up. Returns whether the exit code is 0.

    The caller has called `probe` and `lock_checkpoints`. `gaps` are those that queries may skip, once.
    `on_supervisor` receives the supervisor before anything starts, so that a signal can ask it to end.
    """
    names = choose_queries(pipeline, options)
    # Settings of the JVM of spark-submit or of a running session might be others than those of this run.
    require_file_manager(spark.conf.get, [str(pipeline.checkpoint_folder(name)) for name in names])
    listener = Listener(events, watch_state(spark, events))
    with lock_in_jvm(spark, pipeline, names), attach_listener(spark, listener):
        skipping_pipeline = ignore_data_loss(pipeline, gaps)
        record_modes = (
            {} if options.until_caught_up else {name: pipeline.trigger(name).flows for name in names}
        )
        if any(record_modes.values()):
            require_enough_cores(spark, pipeline, names, probed)
        skipping_frames = _build_frames(
            spark, skipping_pipeline, [name for name in names if name in gaps], record_modes
        )
        frames = _build_frames(spark, pipeline, names, record_modes)
        check_restarts(spark, pipeline, frames, probed, options.accept, events)
        queries = []
        for name in names:
            query_class = FlowingQuery if record_modes.get(name) else RunningQuery
            query = query_class(
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
                frame, offsets = skipping_frames[name], tuple(gaps[name])
                query = replace(query, pipeline=skipping_pipeline, frame=frame, gaps=offsets, following=query)
            queries.append(query)
        is_head_start = (
            options.seconds is None
            and not any(record_modes.values())
            and _needs_head_start(spark, pipeline, names)
        )
        alone_until = time.monotonic() + HEAD_START if is_head_start else 0.0
        supervisor = Supervisor(
            queries,
            pipeline.defaults.retry,
            events,
            alone_until=alone_until,
            open_files=OpenFilesWatch(watch_files(spark, pipeline, names), events),
        )
        on_supervisor(supervisor)
        with poll_less_often(spark, pipeline.spark, len(names)):
            succeeded = supervisor.run(options.seconds)
        warn_of_spooled(pipeline, names, events)
        return succeeded


@contextmanager
def attach_listener(spark: SparkSession, listener: Listener) -> Iterator[None]:
    """Attach the listener to all queries of the session, until the last batch's metrics have arrived."""
    attached = internals.add_query_listener(spark, listener)
    try:
        yield
    finally:
        _drain_listener_bus(spark)
        internals.remove_query_listener(spark, attached)


def _build_frames(
    spark: SparkSession, pipeline: Pipeline, names: Sequence[str], record_modes: Mapping[str, str | None]
) -> dict[str, DataFrame]:
    """Return the frame that each query writes. Frames of continuous queries are built without row counts."""
    frames: dict[str, DataFrame] = {}
    for counted in (False, True):
        chosen_names = [name for name in names if (record_modes.get(name) != "continuous") is counted]
        views = build_frames(spark, pipeline, queries=chosen_names, counted=counted)
        frames |= {name: views[pipeline.reads(name)] for name in chosen_names}
    return frames


def _needs_head_start(spark: SparkSession, pipeline: Pipeline, names: Sequence[str]) -> bool:
    """Return whether a pipeline starts for the first time, with at least as many queries as parallel tasks."""
    folder = pipeline.checkpoint_folder(names[0])
    has_begun = Checkpoint(folder).planned() is not None
    return not has_begun and 1 < len(names) >= spark.sparkContext.defaultParallelism


def _drain_listener_bus(spark: SparkSession) -> None:
    """Wait until Spark's listener bus has delivered its events, because the last batch's metrics come late."""
    try:
        wait_for_reports(spark)
    except Exception as error:
        # A JVM that is ending raises many kinds of error. One sentence replaces Py4J's.
        raise explain_lost_jvm(error) or MillstreamError(
            "Spark's JVM did not respond at the end of the run",
            "see the end of the run's log for the cause; the next run continues where this one ended",
        ) from error
