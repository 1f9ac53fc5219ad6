"""Find the record by which a batch fails: its parts are run again as plain batches, in halves, until one is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.checkpoint import record as records
from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.source import OffsetRange
from millstream.diagnostics.failure import CannotGoOn
from millstream.pipeline.graph import Graph
from millstream.runtime.assemble import assemble
from millstream.runtime.failures import Cause, classify

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry

# A batch of a million records takes 21 halves, each of which may have to be tried twice; and nobody waits longer than
# so many seconds for a better word about a query that has ended already.
TRIES, SECONDS = 64, 60.0
# So much of a value is shown, in characters.
SHOWN = 200

Trial = Callable[["DataFrame"], None]
"""Runs rows without keeping them, and raises what is wrong with them."""


@dataclass(frozen=True)
class Poison:
    """The smallest part of a batch that was found to fail by itself."""

    reads: tuple[str, ...]
    """What it is, a clause a piece: a partition with its offset, a file."""
    value: str | None
    """The beginning of the record's value, where the part is one record of a topic."""
    reason: str
    """What the part fails with."""


def run(frame: DataFrame) -> None:
    """The trial of what stands before every sink: compute the rows and let them go."""
    frame.write.format("noop").mode("overwrite").save()


def find(
    spark: SparkSession, pipeline: Pipeline, query: str, batch: int, trials: tuple[Trial, ...] = (run,)
) -> Poison | None:
    """The smallest part of a batch that fails by itself in one of the trials; None where nothing can be said.

    Nothing is written and no state is touched: views are computed over the part alone, as a batch. So a failure
    that needs other records or state is not found. Asks the source again, for `SECONDS` and `TRIES` at the most.
    """
    known = _known(pipeline, query, batch)
    if known is None:
        return None
    name, offsets = known
    # A session of its own: the views of other queries that still run keep their names.
    search = _Search(spark.newSession(), _plain(pipeline), query, name, trials)
    try:
        return search.narrow(offsets)
    except _AskedEnoughError:
        return None


def _known(pipeline: Pipeline, query: str, batch: int) -> tuple[str, OffsetRange] | None:
    """The one stream that a query reads and what the batch reads of it; None for several, or an unread checkpoint."""
    streams = [one for one in Graph.of(pipeline).upstream(query) if not pipeline.sources[one].static]
    folder = pipeline.checkpoint(query).local
    if len(streams) != 1 or folder is None:
        return None
    checkpoint = Checkpoint(folder)
    try:
        planned, record = checkpoint.offsets(batch), records.read(checkpoint.folder)
        before = checkpoint.offsets(batch - 1) if batch else None
        if planned is None or record is None or len(planned.sources) != 1 or planned.sources[0] is None:
            return None
        start = before.sources[0] if before and before.sources else None
        files = checkpoint.files(0, start, planned.sources[0])
        return streams[0], OffsetRange(
            start or (None if files else checkpoint.first(0)), planned.sources[0], files
        )
    except (CannotGoOn, OSError):
        # A file that is torn as well must not take the place of why the query failed.
        return None


def _plain(pipeline: Pipeline) -> Pipeline:
    """The pipeline with sources that are read as tables: views are batches then."""
    static = {name: one.model_copy(update={"static": True}) for name, one in pipeline.sources.items()}
    return pipeline.model_copy(update={"sources": static})


class _AskedEnoughError(Exception):
    """The source cannot be asked, or something is away."""


@dataclass
class _Search:
    """One search through the records of one source."""

    session: SparkSession
    pipeline: Pipeline
    query: str
    source: str
    trials: tuple[Trial, ...]

    def __post_init__(self) -> None:
        self._until = time.monotonic() + SECONDS
        self._left = TRIES

    def narrow(self, offsets: OffsetRange) -> Poison | None:
        """The smallest part that fails by itself; None when the whole does not."""
        entry = self.pipeline.sources[self.source]
        here, trial, reason = offsets, *self._first(offsets)
        if trial is None:
            return None
        while halves := entry.source.halves(here):
            found = next(
                ((half, said) for half in halves if (said := self._fails(half, trial)) is not None), None
            )
            if found is None:
                break
            here, reason = found
        return Poison(tuple(entry.source.pieces(here)), self._value(entry, here), reason)

    def _first(self, offsets: OffsetRange) -> tuple[Trial | None, str]:
        """The trial that the whole fails in, and with what."""
        for trial in self.trials:
            if (said := self._fails(offsets, trial)) is not None:
                return trial, said
        return None, ""

    def _fails(self, offsets: OffsetRange, trial: Trial) -> str | None:
        """What a part fails with, or None; also when there was no time left to see."""
        if not self._left or time.monotonic() > self._until:
            return None
        self._left -= 1
        try:
            trial(self._frame(offsets))
        except Exception as error:
            # Whatever the user's code or the sink raises is what is looked for, unless something is away.
            failure = classify(None, error)
            if failure.cause is not Cause.DEFECT:
                raise _AskedEnoughError from error
            return failure.message
        return None

    def _frame(self, offsets: OffsetRange) -> DataFrame:
        """What the query hands to its sinks, of these records alone."""

        def reader(name: str, entry: SourceEntry) -> DataFrame:
            if name == self.source:
                raw = entry.source.read_range(self.session, offsets, entry.ddl)
                if raw is None:
                    raise _AskedEnoughError
                return raw
            if not entry.source.static:
                # Of another query; an empty table lets the views over it be made.
                return self.session.createDataFrame([], entry.source.columns or entry.ddl or "value STRING")
            return entry.source.read(self.session, static=True, schema=entry.ddl)

        return assemble(self.session, self.pipeline, reader)[self.pipeline.reads(self.query)]

    def _value(self, entry: SourceEntry, offsets: OffsetRange) -> str | None:
        """The beginning of the value of the one record that is left, with nothing a terminal would obey."""
        raw = entry.source.read_range(self.session, offsets, entry.ddl) if entry.source.payload else None
        if raw is None or entry.source.halves(offsets):
            return None
        rows = raw.select(F.substring("value", 1, SHOWN), F.length("value")).take(2)
        if len(rows) != 1:
            return None
        value, length = rows[0]
        if value is None:
            return "null"
        return ascii(bytes(value).decode("utf-8", "backslashreplace")) + (" …" if length > SHOWN else "")
