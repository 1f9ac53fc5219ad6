"""What time, a late row, a crash and a fresh start do to one query, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Aggregate, Join, Read, Watermark
from millstream.analysis.reach import keeps
from millstream.analysis.telling import steps
from millstream.analysis.wording import called, length, listed, quoted
from millstream.spec.expectation import Otherwise
from millstream.spec.guarantee import Guarantee
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.dataflow import Operator, PlannedQuery
    from millstream.analysis.guarantee import Promise
    from millstream.pipeline.graph import Graph

POLICY = "spark.sql.streaming.multipleWatermarkPolicy"

# Spark's default; without them, what the last rows of a stream complete waits for further rows.
EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"

_REPLAYED = {
    Guarantee.EXACTLY_ONCE: "passes over the batch if it has committed it already",
    Guarantee.EFFECTIVELY_ONCE: "gets the same keys again, and a reader may see its rows flicker",
    Guarantee.AT_LEAST_ONCE: "may get the batch's rows a second time",
    Guarantee.AT_MOST_ONCE: "may miss the batch's rows",
}


_BROKEN = {
    Otherwise.WARN: "is counted and kept",
    Otherwise.DROP: "is counted and left out",
    Otherwise.DEAD_LETTER: "is set aside",
    Otherwise.FAIL: "ends the query",
}


def clock(query: PlannedQuery) -> list[str]:
    """How the query's watermark moves, and when rows come out."""
    marks = list(query.of(Watermark))
    if not marks:
        return ["it has no watermark: no row is late, and no state leaves by time"]
    words = [f"{length(mark.delay)} behind '{mark.event_time}' of {_inputs(mark)}" for mark in marks]
    said = []
    if len(marks) == 1:
        said.append(f"its watermark is {words[0]}; it moves between batches, never within one")
    elif query.spark.get(POLICY, "min").lower() == "max":
        said.append(
            f"its watermark is the greatest of {len(marks)}: {listed(words)}; it moves between batches"
        )
        said.append("rows of a slower input are late as soon as the fastest input is far enough ahead")
    else:
        said.append(f"its watermark is the least of {len(marks)}: {listed(words)}; it moves between batches")
        said.append(
            "an input that falls silent holds it where it is: state grows, and what waits for it waits on"
        )
    said += dict.fromkeys(step.kept.comes for step in steps(query) if step.kept and step.kept.comes)
    if _waits(query):
        if query.trigger.ends:
            said.append("a run that ends by itself leaves what the watermark has not passed to the next run")
        if query.spark.get(EMPTY_BATCHES, "true").lower() == "false":
            said.append("no batch runs without rows: what the last rows complete waits for further rows")
    return said


def late(query: PlannedQuery) -> list[str]:
    """What becomes of a row that comes too late."""
    if not list(query.of(Watermark)):
        return ["there is none: without a watermark every row counts, however old"]
    told = [
        f"in {called(step.operator)}: {step.kept.late}"
        for step in steps(query)
        if step.kept and step.kept.late
    ]
    if not told:
        return ["no operator drops one: a row counts however old it is"]
    return [
        *dict.fromkeys(told),
        "Spark says nothing of it but a number, numRowsDroppedByWatermark: `late` in the table of a run, "
        "`late_rows` in its events",
        "the newest time is that of all partitions together: rows of a partition that lags behind by more than "
        "the delay are late",
    ]


def expected(graph: Graph, name: str) -> list[str]:
    """What the rows on the way of a query are expected to be, and what becomes of one that is not."""
    pipeline = graph.pipeline
    told = []
    for place in (*graph.upstream(name), *graph.views(name)):
        what = "source" if place in pipeline.sources else "view"
        for expectation, one in pipeline.expected(place).items():
            told.append(
                f"{what} '{place}', {expectation}: a row for which {one.that} is not true {_BROKEN[one.otherwise]}"
            )
    return told


def crash(graph: Graph, name: str, promises: Sequence[Promise], query: PlannedQuery | None) -> list[str]:
    """What happens when the process dies in the middle of a batch and the query starts again."""
    pipeline = graph.pipeline
    entry = pipeline.queries[name]
    streams = [source for source in graph.upstream(name) if not pipeline.sources[source].static]
    lost = [s for s in streams if not pipeline.sources[s].source.replayable]
    again = [s for s in streams if s not in lost]
    said = ["the batch in progress runs again first: its offsets are in the checkpoint, its commit is not"]
    if again:
        said.append(f"it reads {quoted(again)} again, from the same offsets to the same offsets")
    if lost:
        said.append(f"what it had of {quoted(lost)} is lost: that source cannot be read again")
    if query and any(keeps(one) for one in query.walk()):
        said.append("its state goes back to the end of the batch before")
    for promise in promises:
        kept, _ = entry.to[promise.number].sink.guarantee(entry.output_mode)
        said.append(f"{promise.sink} {_REPLAYED[kept]}")
    if len(entry.to) > 1:
        said.append("sinks are written one after the other: after the crash each has the batch, or gets it")
    return said


def fresh(graph: Graph, name: str) -> list[str]:
    """Where a query without a checkpoint starts to read, for sources that let one choose."""
    pipeline = graph.pipeline
    found = []
    for source in graph.upstream(name):
        entry = pipeline.sources[source]
        begins = "" if entry.static else entry.source.begins()
        found += [f"'{source}' {begins}"] if begins else []
    if found:
        found.append(
            "a checkpoint that exists goes on from its own offsets: these settings count for a fresh one alone"
        )
    return found


def _inputs(operator: Operator) -> str:
    """The streams that a watermark is of."""
    names = [one.source or one.format for one in operator.walk() if isinstance(one, Read) and one.streaming]
    return listed([f"'{name}'" for name in dict.fromkeys(names)]) or "its input"


def _waits(query: PlannedQuery) -> bool:
    """Are there rows that come out only when the watermark has passed?"""
    if query.output_mode is not OutputMode.APPEND:
        return False
    return any(
        isinstance(one, Aggregate) or (isinstance(one, Join) and one.how.endswith("_outer"))
        for one in query.walk()
        if keeps(one)
    )
