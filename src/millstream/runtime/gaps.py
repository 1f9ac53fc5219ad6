"""What a query goes on from and its sources do not have any more: named, and passed only when somebody says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint import gaplog
from millstream.checkpoint import record as records
from millstream.checkpoint.folder import Checkpoint
from millstream.diagnostics.failure import CannotGoOn, Unfit
from millstream.runtime.events import now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.checkpoint.record import Record
    from millstream.connectors.source import Gap
    from millstream.pipeline.model import Pipeline
    from millstream.runtime.events import Events

Told = dict[str, dict[str, str]]
# So many gaps are named in a sentence; a topic may have hundreds of partitions.
_NAMED = 3


@dataclass(frozen=True)
class Missing:
    """One gap and where its offsets stand in the checkpoint: the source's name and its place in the plan."""

    source: str
    index: int
    gap: Gap


def missing(pipeline: Pipeline, query: str, probed: Told) -> list[Missing]:
    """The gaps before a query's next records, or before those of the batch that it repeats. Connects.

    Raises `Unfit` where a source is another one than the checkpoint began with (a topic made again).
    """
    folder = pipeline.checkpoint(query).local
    assert folder is not None, "locked, and so on this machine"
    record = records.read(folder)
    if record is None:
        return []
    starts = _starts(Checkpoint(folder), record)
    found = []
    for index, told in enumerate(record.sources):
        name = told.get("name", "")
        entry = pipeline.sources.get(name)
        start = starts[index] if index < len(starts) else None
        if entry is None or start is None:
            continue
        if said := entry.source.another(told, probed.get(name, {})):
            raise Unfit(
                f"query '{query}': {said} since it last ran: offsets of the old one would skip records of the "
                "other, or end the query",
                f"start '{query}' with an empty checkpoint folder; its sinks keep the rows that they have",
            )
        try:
            found += [Missing(name, index, gap) for gap in entry.source.gaps(start)]
        except Unfit as unfit:
            raise Unfit(f"query '{query}': {unfit.what}", unfit.fix) from unfit
    return found


def accept(
    pipeline: Pipeline, queries: Sequence[str], probed: Told, events: Events, *, accepted: bool
) -> dict[str, list[Missing]]:
    """The gaps of each query that has some, kept in its checkpoint and told as events.

    Raises `CannotGoOn` that names them unless they are `accepted`, or the source's own settings pass over them.
    """
    found = {query: gaps for query in queries if (gaps := missing(pipeline, query, probed))}
    for query, gaps in found.items():
        if not accepted and (stopping := [one for one in gaps if stops(pipeline, one)]):
            raise refusal(query, stopping)
    for query, gaps in found.items():
        folder = pipeline.checkpoint(query).local
        assert folder is not None, "locked, and so on this machine"
        told = [plain(one) for one in gaps]
        gaplog.add(folder, [{**one, "accepted": accepted, "at": now()} for one in told])
        for one in told:
            events.tell("gap", query, **one)
    return {
        query: kept
        for query, gaps in found.items()
        if (kept := [one for one in gaps if stops(pipeline, one)])
    }


def stops(pipeline: Pipeline, one: Missing) -> bool:
    """Would the source end the query at this gap?"""
    source = pipeline.sources[one.source].source
    return source.lenient() != source


def lenient(pipeline: Pipeline, found: Mapping[str, Sequence[Missing]]) -> Pipeline:
    """The pipeline with the sources of these gaps going on where records are gone."""
    names = {one.source for gaps in found.values() for one in gaps}
    sources = {
        name: entry.model_copy(update={"source": entry.source.lenient()}) if name in names else entry
        for name, entry in pipeline.sources.items()
    }
    return pipeline.model_copy(update={"sources": sources})


def passed(checkpoint: Checkpoint, gaps: Sequence[Missing]) -> bool:
    """Has a committed batch left all of these gaps behind?"""
    newest = checkpoint.committed()
    done = checkpoint.offsets(newest) if newest is not None else None
    return done is not None and all(one.gap.passed(done.sources[one.index]) for one in gaps)


def refusal(query: str, gaps: Sequence[Missing]) -> CannotGoOn:
    """The gaps in words: which offsets of what are gone, how many records in all, and what may be done."""
    named = "; ".join(str(one.gap) for one in gaps[:_NAMED])
    if len(gaps) > _NAMED:
        total = sum(one.gap.end - one.gap.start for one in gaps)
        named += f"; and {len(gaps) - _NAMED} partitions more, {total:,} records in all"
    return CannotGoOn(
        f"records that query '{query}' has not read were deleted: {named}",
        f"find out what is lost; to go on without those records: 'millstream run --select {query} --accept-gap'",
    )


def plain(one: Missing) -> dict[str, object]:
    """A gap as an event and the checkpoint have it."""
    gap = one.gap
    return {
        "source": one.source,
        "topic": gap.topic,
        "partition": gap.partition,
        "from": gap.start,
        "to": gap.end,
        "records": gap.end - gap.start,
    }


def _starts(checkpoint: Checkpoint, record: Record) -> tuple[str | None, ...]:
    """Where the next batch begins in each source; the batch that was planned and not committed is the next."""
    newest = checkpoint.planned()
    planned = checkpoint.offsets(newest) if newest is not None else None
    if newest is None or planned is None:
        return ()
    if checkpoint.committed() == newest:
        return planned.sources
    if newest == 0:
        return tuple(checkpoint.first(record.log(index)) for index in range(len(planned.sources)))
    before = checkpoint.offsets(newest - 1)
    return before.sources if before else ()


def named(pipeline: Pipeline, query: str) -> CannotGoOn | None:
    """What is gone at this moment, asked once Spark has ended a query for it; None when all is there.

    Raises `NotReady` when a source does not answer.
    """
    try:
        probed = {name: entry.source.probe() for name, entry in pipeline.sources.items() if not entry.static}
        if gaps := missing(pipeline, query, probed):
            return refusal(query, gaps)
    except Unfit as unfit:
        return unfit
    return None
