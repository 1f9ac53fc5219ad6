"""Set malformed records aside: find those of one batch again and keep them with their place and reason."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from millstream.connectors.sink import SinkIdentity
from millstream.connectors.source import OffsetRange
from millstream.pipeline.graph import Graph
from millstream.pipeline.model import OnMalformed, Pipeline
from millstream.runtime.decode import CORRUPT, REASON, judge, observed, wanted
from millstream.runtime.expect import (
    BROKEN,
    BYTES,
    LETTERS,
    RAW,
    SET_ASIDE,
    broken,
    lost,
    metric,
    names_of,
    reason_of,
)
from millstream.runtime.letter import KEPT, PLACE, as_bytes, passing, place, raw_columns
from millstream.spec.expectation import Otherwise
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.folder import Checkpoint
    from millstream.connectors.letters import Keeper
    from millstream.runtime.origins import Origin

SINK = "dead_letters"


@dataclass(frozen=True)
class Aside:
    """How many records of a source or view a batch set aside: malformed ones, and rows that broke an expectation.

    `size` is about how many bytes they are. `letters` holds the rows as a JSON array, where they cannot be read
    again.
    """

    malformed: int
    broken: int
    size: int
    letters: str | None = None


@dataclass
class Letters:
    """The dead letters of one query.

    A batch's malformed records are counted while it runs. Only when there are some is the batch's range of
    offsets read once more, and the records are kept with the batch's id as their mark: a replayed batch adds
    nothing.
    """

    pipeline: Pipeline
    query: str
    checkpoint: Checkpoint
    origins: list[Origin]
    keeper: Keeper

    @classmethod
    def of(
        cls, pipeline: Pipeline, query: str, query_id: str, checkpoint: Checkpoint, origins: list[Origin]
    ) -> Letters:
        """The dead letters of a query, kept where the pipeline says."""
        identity = SinkIdentity(pipeline.name, query, query_id, SINK, OutputMode.APPEND)
        return cls(pipeline, query, checkpoint, origins, pipeline.letters.keeper(identity))

    def wanted(self, source: str) -> bool:
        """Are this source's malformed records to be kept?"""
        entry = self.pipeline.sources.get(source)
        return entry is not None and entry.on_malformed is OnMalformed.DEAD_LETTER

    @property
    def places(self) -> list[str]:
        """The sources and views of the query whose rows may be set aside, each once."""
        known = dict.fromkeys(origin.name for origin in self.origins if origin.name is not None)
        views = Graph.of(self.pipeline).views(self.query)
        return [name for name in (*known, *views) if self.pipeline.sets_aside(name)]

    def keep(self, spark: SparkSession, batch_id: int, aside: Mapping[str, Aside]) -> None:
        """Keep what a batch set aside, by source and view; a batch kept already adds nothing."""
        # A source that a query reads twice, for a join with itself, is there twice, mostly with the same records.
        ranges = {
            (origin.name, self._range(batch_id, index, origin.number)): None
            for index, origin in enumerate(self.origins)
            if origin.name is not None and origin.name in aside
        }
        found = [
            letters
            for number, (name, offsets) in enumerate(ranges)
            if offsets is not None
            and (letters := self._of_source(spark, batch_id, number, name, offsets, aside[name])) is not None
        ]
        found += [
            self._of_passing(spark, batch_id, name, one.letters) for name, one in aside.items() if one.letters
        ]
        if not found:
            return
        frame = reduce(lambda one, other: one.unionByName(other), found)
        self.keeper.keep(frame, batch_id, sum(one.size for one in aside.values()))

    def _of_source(
        self, spark: SparkSession, batch_id: int, number: int, name: str, offsets: OffsetRange, aside: Aside
    ) -> DataFrame | None:
        """What was set aside of one source's records, read again, in the columns of the dead-letter table."""
        entry = self.pipeline.sources[name]
        expect = entry.expect if aside.broken and aside.letters is None else {}
        if not aside.malformed and not expect:
            return None
        raw = entry.source.read_range(spark, offsets, entry.ddl)
        if raw is None:
            return None
        columns = [*raw_columns(entry, raw.columns), *(CORRUPT,) * (CORRUPT in raw.columns)]
        seen = wanted(entry, raw)
        judged = judge(entry, raw).select(
            F.struct(*(F.col(column) for column in columns)).alias(RAW)
            if columns
            else F.lit(None).alias(RAW),
            F.col(REASON),
            *seen,
        )
        names = [column for column in judged.columns if column not in (RAW, REASON)]
        if expect:
            judged = judged.withColumn(BROKEN, F.when(F.col(REASON).isNull(), broken(expect)))
        # Spark would move the filter below the decoding and decode once for each mention of the result; it
        # moves nothing past a metric. This halves what setting aside costs.
        judged = judged.observe(f"millstream:letters:{name}:{number}", F.count(F.lit(1)).alias("rows"))
        malformed = F.col(REASON).isNotNull() & F.lit(self.wanted(name))
        row = as_bytes(names) if expect else F.lit(None)
        text = F.encode(F.col(RAW)[CORRUPT], "UTF-8") if CORRUPT in columns else F.lit(None)
        value = None if "value" in columns else F.when(F.col(REASON).isNull(), row).otherwise(text)
        bad = judged.where(malformed | lost(expect)) if expect else judged.where(malformed)
        named = names_of(expect, Otherwise.DEAD_LETTER) if expect else F.lit(None)
        why = reason_of(expect) if expect else F.lit(None)
        return self._told(
            bad.select(
                *place(columns, value),
                F.coalesce(F.col(REASON), why).alias("reason"),
                F.when(F.col(REASON).isNull(), named).cast("string").alias("expectation"),
            ),
            name,
            batch_id,
        )

    def _of_passing(self, spark: SparkSession, batch_id: int, name: str, letters: str | None) -> DataFrame:
        """Letters that the batch handed over itself, as a JSON array."""
        text = spark.createDataFrame([(letters,)], "letters STRING")
        return self._told(text.select(F.inline(F.from_json("letters", KEPT))), name, batch_id)

    def _told(self, bad: DataFrame, name: str, batch_id: int) -> DataFrame:
        """Letters with what is said of all of a batch."""
        return bad.select(
            F.lit(self.query).alias("query"),
            F.lit(name).alias("source"),
            *(F.col(column) for column in PLACE),
            F.col("reason"),
            F.lit(batch_id).cast("bigint").alias("batch_id"),
            F.current_timestamp().alias("at"),
            F.col("expectation"),
        )

    def _range(self, batch_id: int, index: int, number: int) -> OffsetRange | None:
        """What the batch read of the source at that place of the plan, whose folder has that number."""
        planned = self.checkpoint.offsets(batch_id)
        if planned is None or index >= len(planned.sources) or (end := planned.sources[index]) is None:
            return None
        before = self.checkpoint.offsets(batch_id - 1) if batch_id else None
        start = before.sources[index] if before and index < len(before.sources) else None
        files = self.checkpoint.files(number, start, end)
        return OffsetRange(start or (None if files else self.checkpoint.first(number)), end, files)


def aside(letters: Letters, metrics: Any) -> dict[str, Aside]:
    """What the last execution set aside, by source and view; `metrics` is Spark's map of observed metrics."""
    found = {}
    for name in letters.places:
        malformed, size = _figures(metrics, observed(name), "malformed", "malformed_bytes")
        gone, bytes_ = _figures(metrics, metric(name), SET_ASIDE, BYTES)
        one = Aside(malformed if letters.wanted(name) else 0, gone, (size or 0) + (bytes_ or 0))
        if gone and passing(letters.pipeline, name):
            text = str(metrics.get(metric(name)).get().getAs(LETTERS))
            one = replace(one, letters=text)
        if one.malformed or one.broken:
            found[name] = one
    return found


def _figures(metrics: Any, name: str, count: str, size: str) -> tuple[int, int]:
    """A metric's number of rows, and about how many bytes they are; zeros where it is not there."""
    found = metrics.get(name)
    if found.isEmpty():
        return 0, 0
    row = found.get()
    return int(row.getAs(count) or 0), int(row.getAs(size) or 0)
