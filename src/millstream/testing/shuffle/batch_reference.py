"""Compute the batch result of all or part of a case's input, and the event time and key of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from millstream.checking.query_plan import SourcePlaces, operators
from millstream.connectors.api.ddl import find_column
from millstream.engine.batch.batch_run import compute_batch_results
from millstream.frames.build_views import read_source
from millstream.frames.decode import DECODED, REASON, decode_rows
from millstream.pipeline.graph import PipelineGraph
from millstream.testing.harness.collecting_sink import collect_rows
from millstream.testing.harness.memory_stream import create_static_frame, raw_ddl
from millstream.testing.harness.memory_streams import MemoryStreams, reduce_pipeline
from millstream.testing.harness.session import open_case_session
from millstream.testing.harness.source_encoder import Feeder
from millstream.testing.shuffle.output_semantics import derive_shape
from millstream.testing.shuffle.sink_contents import to_comparable
from millstream.testing.shuffle.watermark_model import TimedRow, WatermarkPolicy

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry
    from millstream.testing.model import Case, Fed, Row
    from millstream.testing.shuffle.output_semantics import Shape
    from millstream.testing.shuffle.splits import Item

_MICROSECOND = 1_000_000
# The clock time for cases that set none, the same in all splits.
_DEFAULT_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


@dataclass
class Baseline:
    """The batch results of one case, each computed once, in sessions with the pipeline's settings."""

    spark: SparkSession
    case: Case
    items: tuple[Item, ...]
    unanswered: str | None = None
    """Why Spark cannot compute the batch result. Set after the first failure."""
    _results: dict[tuple[frozenset[int], bool, bool], tuple[Row, ...] | None] = field(default_factory=dict)

    @cached_property
    def shape(self) -> Shape:
        """The properties of the output, from the query's plan."""
        pipeline = self.case.pipeline
        formats = {name: entry.source.kind for name, entry in pipeline.sources.items()}
        plan_names = SourcePlaces(formats, frozenset(pipeline.views))
        with open_case_session(self.spark, pipeline) as session:
            reduced = reduce_pipeline(pipeline, pipeline.reads(self.case.query))
            MemoryStreams(session).frames(reduced, self.case.static, self.now)
            # Spark's plan contains the names by which its views are read.
            frame = session.table(f"`{pipeline.reads(self.case.query)}`")
            root = operators(frame, plan_names, pipeline.queries[self.case.query].output_mode)
            return derive_shape(pipeline, self.case.query, root)

    def rows(
        self, numbers: Iterable[int], *, is_deduplicated: bool = False, last: bool = False
    ) -> tuple[Row, ...] | None:
        """Return the batch result of some of the items, or None if Spark cannot compute one.

        With `is_deduplicated`, sources do not drop repeated rows, because the items are already deduplicated. With
        `last`, the input is reversed, so that a deduplication keeps a different row.
        """
        cache_key = (frozenset(numbers), is_deduplicated, last)
        if cache_key not in self._results:
            self._results[cache_key] = self._compute_rows(*cache_key)
        return self._results[cache_key]

    @cached_property
    def timed(self) -> Mapping[int, TimedRow]:
        """The event time and key of each item, by its number."""
        timed_by_number: dict[int, TimedRow] = {}
        for name in self._streaming_sources:
            items_of_source = [item for item in self.items if item.source == name]
            entry = self.case.pipeline.sources[name]
            times_and_keys = self._times_and_keys(
                name, entry, [self._encoded_items[item.number] for item in items_of_source]
            )
            timed_by_number |= {
                item.number: TimedRow(name, time, key)
                for item, (time, key) in zip(items_of_source, times_and_keys, strict=True)
            }
        return timed_by_number

    @cached_property
    def watermark_policy(self) -> WatermarkPolicy:
        """The watermark policy of the sources that the query reads."""
        sources = {name: self.case.pipeline.sources[name] for name in self._streaming_sources}
        use_slowest = str(self.case.pipeline.spark.get(_POLICY, "min")).lower() != "max"
        return WatermarkPolicy(
            {
                name: int(entry.watermark.delay_threshold.seconds * _MICROSECOND)
                for name, entry in sources.items()
                if entry.watermark is not None
            },
            use_slowest,
        )

    def without_source_deduplication(self) -> Pipeline:
        """Return the pipeline without deduplication in its sources."""
        pipeline = self.case.pipeline
        sources = {
            name: entry.model_copy(update={"drop_duplicates_within_watermark": ()})
            for name, entry in pipeline.sources.items()
        }
        return pipeline.model_copy(update={"sources": sources})

    @property
    def drops_repeated_rows(self) -> bool:
        """Whether a source drops repeated rows within the watermark."""
        sources = self.case.pipeline.sources
        return any(sources[name].drop_duplicates_within_watermark for name in self._streaming_sources)

    @cached_property
    def has_free_choice(self) -> bool:
        """Whether a deduplication may keep any one of several different rows."""
        sources = self.case.pipeline.sources
        in_sources = sum(
            bool(sources[name].drop_duplicates_within_watermark) for name in self._streaming_sources
        )
        if self.shape.deduplications > in_sources:
            return True
        first_by_key: dict[object, Fed] = {}
        for item in self.items:
            timed = self.timed.get(item.number)
            if timed is not None and timed.key is not None:
                first = first_by_key.setdefault((timed.source, timed.key), item.record)
                if first != item.record:
                    return True
        return False

    @cached_property
    def _streaming_sources(self) -> list[str]:
        pipeline = self.case.pipeline
        return [
            name
            for name in PipelineGraph.of(pipeline).sources_of(self.case.query)
            if not pipeline.sources[name].static
        ]

    @property
    def now(self) -> datetime:
        """The clock time in all splits."""
        return self.case.now or _DEFAULT_NOW

    @cached_property
    def _encoded_items(self) -> dict[int, str]:
        """Each item as JSON of its source's raw columns, by its number."""
        text_by_number: dict[int, str] = {}
        zone = self.case.pipeline.session_zone
        for name in {item.source: None for item in self.items}:
            items_of_source = [item for item in self.items if item.source == name]
            entry = self.case.pipeline.sources[name]
            texts = Feeder(name).raw(entry, [item.record for item in items_of_source], self.now, zone)
            text_by_number |= {item.number: text for item, text in zip(items_of_source, texts, strict=True)}
        return text_by_number

    @cached_property
    def _raw_ddls(self) -> dict[str, str]:
        names = {*self._streaming_sources, *self.case.static}
        return {name: raw_ddl(self.spark, name, self.case.pipeline.sources[name]) for name in names}

    def _compute_rows(
        self, numbers: frozenset[int], is_deduplicated: bool, last: bool
    ) -> tuple[Row, ...] | None:
        pipeline = self.without_source_deduplication() if is_deduplicated else self.case.pipeline
        with open_case_session(self.spark, pipeline) as session:

            def reader(name: str, entry: SourceEntry) -> DataFrame:
                if name in self.case.static:
                    texts = Feeder(name).raw(entry, self.case.static[name], self.now, pipeline.session_zone)
                    return create_static_frame(session, texts, self._raw_ddls[name])
                if pipeline.sources[name].static or name not in self._raw_ddls:
                    return read_source(session, name, entry)
                texts_of_source = [
                    self._encoded_items[item.number]
                    for item in self.items
                    if item.source == name and item.number in numbers
                ]
                # One partition preserves the order of the rows.
                return create_static_frame(
                    session, texts_of_source[::-1] if last else texts_of_source, self._raw_ddls[name]
                ).coalesce(1)

            try:
                return collect_rows(
                    compute_batch_results(session, self._only_query(pipeline), reader)[self.case.query]
                )
            except PySparkException as error:
                self.unanswered = str(error).partition("\n")[0]
                return None

    def _only_query(self, pipeline: Pipeline) -> Pipeline:
        """Return the pipeline with only the case's query, so that no other source is opened."""
        upstream = {*PipelineGraph.of(pipeline).behind(pipeline.reads(self.case.query))}
        return pipeline.model_copy(
            update={
                "sources": {name: entry for name, entry in pipeline.sources.items() if name in upstream},
                "views": {name: entry for name, entry in pipeline.views.items() if name in upstream},
                "queries": {self.case.query: pipeline.queries[self.case.query]},
            }
        )

    def _times_and_keys(
        self, name: str, entry: SourceEntry, texts: Sequence[str]
    ) -> list[tuple[int | None, Hashable]]:
        """Return the event time in microseconds and the key of each row. Both are None for a malformed row."""
        if entry.watermark is None or not texts:
            return [(None, None)] * len(texts)
        with open_case_session(self.spark, self.case.pipeline) as session:
            decoded = decode_rows(
                entry, create_static_frame(session, texts, self._raw_ddls[name]).coalesce(1)
            )
            is_nested = DECODED in decoded.columns

            def column(column_name: str) -> Column:
                if is_nested and (declared := find_column(column_name, entry.columns or {})):
                    return F.col(DECODED)[declared]
                return F.col(f"`{column_name}`")

            time = F.unix_micros(column(entry.watermark.event_time).cast("timestamp"))
            keys = [
                column(key).alias(f"k{at}") for at, key in enumerate(entry.drop_duplicates_within_watermark)
            ]
            rows_found = decoded.select(F.when(F.col(REASON).isNull(), time).alias("time"), *keys).collect()
            return [(row[0], to_comparable(tuple(row[1:])) if keys else None) for row in rows_found]
