"""The batch answer of a case's input, of all of it or of a part, and what the watermark needs to know of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from millstream.pipeline.graph import Graph
from millstream.runtime.assemble import read
from millstream.runtime.batch.answer import answers
from millstream.runtime.decode import DECODED, REASON, judge
from millstream.runtime.planning import Where, operators
from millstream.testing.collecting import rows
from millstream.testing.feeding import Feeder
from millstream.testing.held import plain
from millstream.testing.lateness import Clocks, Timed
from millstream.testing.lines import Lines, part
from millstream.testing.memory import fixed, raw_ddl
from millstream.testing.readings import shape
from millstream.testing.session import case_session

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry
    from millstream.testing.case import Case, Fed, Row
    from millstream.testing.readings import Shape
    from millstream.testing.splits import Item

_MICROSECOND = 1_000_000
# For cases that do not say what the clock says: all splits have the same.
_SOMEDAY = datetime(2026, 1, 1, tzinfo=UTC)
_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


@dataclass
class Baseline:
    """Answers for one case, each computed once, in sessions with the pipeline's settings."""

    spark: SparkSession
    case: Case
    items: tuple[Item, ...]
    unanswered: str | None = None
    """Why Spark cannot compute the batch answer, once it has refused."""
    _known: dict[tuple[frozenset[int], bool, bool], tuple[Row, ...] | None] = field(default_factory=dict)

    @cached_property
    def shape(self) -> Shape:
        """What the query's plan says of its rows."""
        pipeline = self.case.pipeline
        formats = {name: entry.source.kind for name, entry in pipeline.sources.items()}
        where = Where(formats, frozenset(pipeline.views))
        with case_session(self.spark, pipeline) as session:
            needed = part(pipeline, pipeline.reads(self.case.query))
            Lines(session).frames(needed, self.case.static, self.now)
            # Spark tells the views of a plan by the names they are read by.
            frame = session.table(f"`{pipeline.reads(self.case.query)}`")
            root = operators(frame, where, pipeline.queries[self.case.query].output_mode)
            return shape(pipeline, self.case.query, root)

    def rows(self, kept: Iterable[int], *, once: bool = False, last: bool = False) -> tuple[Row, ...] | None:
        """The batch answer of some of the items; None when Spark cannot compute one.

        With `once`, sources drop no repeated rows: the items are what they let through. With `last`, the input is
        turned round, so that a deduplication keeps another of its rows.
        """
        which = (frozenset(kept), once, last)
        if which not in self._known:
            self._known[which] = self._answer(*which)
        return self._known[which]

    @cached_property
    def timed(self) -> Mapping[int, Timed]:
        """Event time and key of each item."""
        found: dict[int, Timed] = {}
        for name in self._streamed:
            mine = [one for one in self.items if one.source == name]
            entry = self.case.pipeline.sources[name]
            told = self._told(name, entry, [self._raw[one.number] for one in mine])
            found |= {one.number: Timed(name, time, key) for one, (time, key) in zip(mine, told, strict=True)}
        return found

    @cached_property
    def clocks(self) -> Clocks:
        """The watermarks of the sources that the query reads."""
        sources = {name: self.case.pipeline.sources[name] for name in self._streamed}
        slowest = str(self.case.pipeline.spark.get(_POLICY, "min")).lower() != "max"
        return Clocks(
            {
                name: int(entry.watermark.delay_threshold.seconds * _MICROSECOND)
                for name, entry in sources.items()
                if entry.watermark is not None
            },
            slowest,
        )

    def without_memory(self) -> Pipeline:
        """The pipeline whose sources drop no repeated rows."""
        pipeline = self.case.pipeline
        sources = {
            name: entry.model_copy(update={"drop_duplicates_within_watermark": ()})
            for name, entry in pipeline.sources.items()
        }
        return pipeline.model_copy(update={"sources": sources})

    @property
    def remembers(self) -> bool:
        """Does a source drop repeated rows within the watermark?"""
        sources = self.case.pipeline.sources
        return any(sources[name].drop_duplicates_within_watermark for name in self._streamed)

    @cached_property
    def loose(self) -> bool:
        """May a deduplication keep one of several rows that are not the same?"""
        sources = self.case.pipeline.sources
        inside = sum(bool(sources[name].drop_duplicates_within_watermark) for name in self._streamed)
        if self.shape.deduplications > inside:
            return True
        seen: dict[object, Fed] = {}
        for one in self.items:
            timed = self.timed.get(one.number)
            if timed is not None and timed.key is not None:
                first = seen.setdefault((timed.source, timed.key), one.fed)
                if first != one.fed:
                    return True
        return False

    @cached_property
    def _streamed(self) -> list[str]:
        pipeline = self.case.pipeline
        return [
            name for name in Graph.of(pipeline).upstream(self.case.query) if not pipeline.sources[name].static
        ]

    @property
    def now(self) -> datetime:
        """What the clock says in all splits."""
        return self.case.now or _SOMEDAY

    @cached_property
    def _raw(self) -> dict[int, str]:
        """Each item as JSON of its source's raw columns."""
        found: dict[int, str] = {}
        for name in {one.source: None for one in self.items}:
            mine = [one for one in self.items if one.source == name]
            entry = self.case.pipeline.sources[name]
            texts = Feeder(name).raw(entry, [one.fed for one in mine], self.now)
            found |= {one.number: text for one, text in zip(mine, texts, strict=True)}
        return found

    @cached_property
    def _ddl(self) -> dict[str, str]:
        wanted = {*self._streamed, *self.case.static}
        return {name: raw_ddl(self.spark, name, self.case.pipeline.sources[name]) for name in wanted}

    def _answer(self, kept: frozenset[int], once: bool, last: bool) -> tuple[Row, ...] | None:
        pipeline = self.without_memory() if once else self.case.pipeline
        with case_session(self.spark, pipeline) as session:

            def reader(name: str, entry: SourceEntry) -> DataFrame:
                if name in self.case.static:
                    texts = Feeder(name).raw(entry, self.case.static[name], self.now)
                    return fixed(session, texts, self._ddl[name])
                if pipeline.sources[name].static or name not in self._ddl:
                    return read(session, name, entry)
                mine = [
                    self._raw[one.number] for one in self.items if one.source == name and one.number in kept
                ]
                # In one partition, so that what is first is first.
                return fixed(session, mine[::-1] if last else mine, self._ddl[name]).coalesce(1)

            try:
                return rows(answers(session, self._alone(pipeline), reader)[self.case.query])
            except PySparkException as refused:
                self.unanswered = str(refused).partition("\n")[0]
                return None

    def _alone(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with the case's query only, so that no other source is opened."""
        behind = {*Graph.of(pipeline).behind(pipeline.reads(self.case.query))}
        return pipeline.model_copy(
            update={
                "sources": {name: one for name, one in pipeline.sources.items() if name in behind},
                "views": {name: one for name, one in pipeline.views.items() if name in behind},
                "queries": {self.case.query: pipeline.queries[self.case.query]},
            }
        )

    def _told(self, name: str, entry: SourceEntry, texts: Sequence[str]) -> list[tuple[int | None, Hashable]]:
        """The event time in microseconds and the key of each row, both None where it has none or is malformed."""
        if entry.watermark is None or not texts:
            return [(None, None)] * len(texts)
        with case_session(self.spark, self.case.pipeline) as session:
            judged = judge(entry, fixed(session, texts, self._ddl[name]).coalesce(1))
            inside = DECODED in judged.columns

            def column(called: str) -> Column:
                if inside and called in (entry.columns or {}):
                    return F.col(DECODED)[called]
                return F.col(f"`{called}`")

            time = F.unix_micros(column(entry.watermark.event_time).cast("timestamp"))
            keys = [
                column(key).alias(f"k{at}") for at, key in enumerate(entry.drop_duplicates_within_watermark)
            ]
            found = judged.select(F.when(F.col(REASON).isNull(), time).alias("time"), *keys).collect()
            return [(row[0], plain(tuple(row[1:])) if keys else None) for row in found]
