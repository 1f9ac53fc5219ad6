"""Describe the effect of time, late rows, a crash and a new checkpoint on a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.explain.plan_steps import list_steps
from millstream.analysis.query.nondeterminism import is_stateful
from millstream.analysis.query.phrasing import describe_operator, format_duration, join_quoted, join_words
from millstream.analysis.query.plan_model import Aggregate, Join, Read, WatermarkOperator
from millstream.pipeline.stateful import ROCKSDB, STORE
from millstream.spark.streaming.code_generation import FEW_ROWS, describe_code_generation
from millstream.spec.expectation import Otherwise
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.query.delivery_guarantee import Promise
    from millstream.analysis.query.plan_model import Operator, PlannedQuery
    from millstream.pipeline.graph import PipelineGraph
    from millstream.pipeline.model import Pipeline

POLICY = "spark.sql.streaming.multipleWatermarkPolicy"

# On by default in Spark; without such batches, the last windows of a stream wait for further rows.
EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"

_REPLAY_EFFECTS = {
    Guarantee.EXACTLY_ONCE: "skips the batch if it has already committed it",
    Guarantee.EFFECTIVELY_ONCE: "gets the same keys again, and a reader may see its rows change back for a moment",
    Guarantee.AT_LEAST_ONCE: "may get the batch's rows a second time",
    Guarantee.AT_MOST_ONCE: "may miss the batch's rows",
}


_VIOLATION_EFFECTS = {
    Otherwise.WARN: "is counted and kept",
    Otherwise.DROP: "is counted and dropped",
    Otherwise.DEAD_LETTER: "is written as a dead letter",
    Otherwise.FAIL: "ends the query",
}


def describe_watermark(query: PlannedQuery) -> list[str]:
    """Describe how the query's watermark advances, and when rows are output."""
    watermarks = list(query.of(WatermarkOperator))
    if not watermarks:
        return ["it has no watermark: no row is late, and no state is removed by time"]
    descriptions = [
        f"{format_duration(watermark.delay)} behind '{watermark.event_time}' of {_list_inputs(watermark)}"
        for watermark in watermarks
    ]
    sentences = []
    if len(watermarks) == 1:
        sentences.append(f"its watermark is {descriptions[0]}; it advances between batches, never within one")
    elif query.spark.get(POLICY, "min").lower() == "max":
        sentences.append(
            f"its watermark is the maximum of {len(watermarks)}: {join_words(descriptions)}; it "
            "advances between batches"
        )
        sentences.append("rows of a slower input are late as soon as the fastest input is far enough ahead")
    else:
        sentences.append(
            f"its watermark is the minimum of {len(watermarks)}: {join_words(descriptions)}; it advances "
            "between batches"
        )
        sentences.append(
            "an input without new rows stops it: state grows, and rows that wait for it keep waiting"
        )
    sentences += dict.fromkeys(
        step.state.comes for step in list_steps(query) if step.state and step.state.comes
    )
    if _waits_for_watermark(query):
        if query.trigger.has_end:
            sentences.append(
                "a run that ends by itself leaves rows that the watermark has not passed to the next run"
            )
        if query.spark.get(EMPTY_BATCHES, "true").lower() == "false":
            sentences.append(
                "no batch runs without rows: windows that the last rows complete wait for further rows"
            )
    return sentences


def describe_late_rows(query: PlannedQuery) -> list[str]:
    """Describe the effect on rows that arrive too late."""
    if not list(query.of(WatermarkOperator)):
        return ["there is none: without a watermark every row is processed, however old"]
    sentences = [
        f"in {describe_operator(step.operator)}: {step.state.late}"
        for step in list_steps(query)
        if step.state and step.state.late
    ]
    if not sentences:
        return ["no operator drops one: every row is processed, however old"]
    return [
        *dict.fromkeys(sentences),
        "Spark reports only their number, numRowsDroppedByWatermark: `late` in the table of a run, "
        "`late_rows` in its events",
        "the newest time is that of all partitions together: rows of a partition that lags by more than "
        "the delay are late",
    ]


def describe_expectations(graph: PipelineGraph, query_name: str) -> list[str]:
    """Describe the expectations of a query's sources and views, and the effect of a violation."""
    pipeline = graph.pipeline
    sentences = []
    for name_on_path in (*graph.sources_of(query_name), *graph.views(query_name)):
        section = "source" if name_on_path in pipeline.sources else "view"
        for expectation_name, expectation in pipeline.expected(name_on_path).items():
            sentences.append(
                f"{section} '{name_on_path}', {expectation_name}: a row for which {expectation.that} is not true "
                f"{_VIOLATION_EFFECTS[expectation.otherwise]}"
            )
    return sentences


def describe_state_store(query: PlannedQuery) -> list[str]:
    """Describe where a new checkpoint keeps the query's state; no sentence for a query without state."""
    if not any(is_stateful(operator) for operator in query.walk()):
        return []
    if query.spark.get(STORE, "").endswith(ROCKSDB.rpartition(".")[2]):
        return ["a new checkpoint keeps its state on disk, in RocksDB"]
    return [
        "a new checkpoint keeps its state in the JVM's memory, in Spark's default state store",
        "if it will have millions of keys, choose RocksDB before the first start ('millstream explain state-store')",
    ]


def describe_crash(
    graph: PipelineGraph, name: str, promises: Sequence[Promise], query: PlannedQuery | None
) -> list[str]:
    """Describe the restart after the process dies in the middle of a batch."""
    pipeline = graph.pipeline
    entry = pipeline.queries[name]
    streams = [source for source in graph.sources_of(name) if not pipeline.sources[source].static]
    unreplayable = [stream for stream in streams if not pipeline.sources[stream].source.is_replayable]
    replayable = [stream for stream in streams if stream not in unreplayable]
    sentences = [
        "the batch in progress runs again first: its offsets are in the checkpoint, its commit is not"
    ]
    if replayable:
        sentences.append(f"it reads {join_quoted(replayable)} again, with the same start and end offsets")
    if unreplayable:
        sentences.append(
            f"the rows it had of {join_quoted(unreplayable)} are lost, because that source cannot be read again"
        )
    if query and any(is_stateful(operator) for operator in query.walk()):
        sentences.append("its state is restored to the end of the previous batch")
    for promise in promises:
        guarantee, _ = entry.to[promise.number].sink.guarantee(entry.output_mode)
        sentences.append(f"{promise.sink} {_REPLAY_EFFECTS[guarantee]}")
    if len(entry.to) > 1:
        sentences.append(
            "sinks are written one after the other: after the crash each already has the batch, or gets it"
        )
    return sentences


def describe_new_checkpoint(graph: PipelineGraph, name: str) -> list[str]:
    """Describe where a query without a checkpoint starts to read, for sources with such a setting."""
    pipeline = graph.pipeline
    sentences = []
    for source in graph.sources_of(name):
        entry = pipeline.sources[source]
        start_text = "" if entry.static else entry.source.begins()
        sentences += [f"'{source}' {start_text}"] if start_text else []
    if sentences:
        sentences.append(
            "an existing checkpoint continues from its own offsets: these settings apply only to a new one"
        )
    return sentences


def describe_small_batch(pipeline: Pipeline, name: str) -> list[str]:
    """Describe what is done in another way for batches of few rows."""
    entry = pipeline.queries[name]
    sentences = [] if pipeline.trigger(name).flows else [describe_code_generation(pipeline.spark)]
    if sentences and len(entry.to) > 1 and all(target.sink.accepts_rows for target in entry.to):
        sentences.append(
            f"after a batch of up to {FEW_ROWS:,} records, the rows of the next one are computed once and collected, "
            "and the sinks take them from there, unless a sink needs Spark for a type, a setting or a file system"
        )
    for target in entry.to:
        if text := target.sink.small_batches(entry.output_mode):
            sentences.append(f"{target.sink.kind}: {text}")
    return sentences


def _list_inputs(operator: Operator) -> str:
    """Name the streams of a watermark, for a sentence."""
    names = [
        read.source or read.format for read in operator.walk() if isinstance(read, Read) and read.is_streaming
    ]
    return join_words([f"'{name}'" for name in dict.fromkeys(names)]) or "its input"


def _waits_for_watermark(query: PlannedQuery) -> bool:
    """Return whether some rows are output only after the watermark has passed."""
    if query.output_mode is not OutputMode.APPEND:
        return False
    return any(
        isinstance(operator, Aggregate) or (isinstance(operator, Join) and operator.how.endswith("_outer"))
        for operator in query.walk()
        if is_stateful(operator)
    )
