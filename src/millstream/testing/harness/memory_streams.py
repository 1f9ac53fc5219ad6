"""Create the memory streams of a test's query and the DataFrames of its sources and views."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.frames.build_views import build_frames, read_source
from millstream.pipeline.graph import PipelineGraph
from millstream.testing.harness.memory_stream import Line, create_static_frame, make_rereadable, raw_ddl
from millstream.testing.harness.source_encoder import Feeder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry
    from millstream.testing.model import Row


@dataclass
class MemoryStreams:
    """The memory streams of all streaming sources, by name. They survive a restart, as topics do."""

    spark: SparkSession
    lines: dict[str, Line] = field(default_factory=dict)

    def add(self, raw: Mapping[str, list[str]]) -> None:
        """Add a portion to each named source."""
        for name, rows in raw.items():
            self.of(name).add(rows)

    def reset(self) -> None:
        """Empty all memory streams. Existing frames stay valid."""
        for line in self.lines.values():
            line.reset()

    def of(self, name: str) -> Line:
        """Return the memory stream of a source, created on first use."""
        return (
            self.lines.setdefault(name, Line(self.spark, name))
            if name not in self.lines
            else self.lines[name]
        )

    def frames(
        self, pipeline: Pipeline, static: Mapping[str, tuple[Row, ...]], now: datetime
    ) -> tuple[Pipeline, dict[str, DataFrame]]:
        """Return a pipeline whose fed sources can be read again, and the frames of its sources and views.

        Errors of the user's functions and of Spark's analysis are not caught.
        """
        ddls: dict[str, str] = {}
        entries: dict[str, SourceEntry] = {}
        for name, entry in pipeline.sources.items():
            if entry.static:
                entries[name] = entry
            else:
                ddls[name] = raw_ddl(self.spark, name, entry)
                entries[name] = make_rereadable(entry, self.of(name), ddls[name])

        def open_source(name: str, entry: SourceEntry) -> DataFrame:
            if not entry.static:
                return self.of(name).frame(ddls[name])
            if name not in static:
                return read_source(self.spark, name, entry)
            rows = Feeder(name).raw(entry, static[name], now, pipeline.session_zone)
            return create_static_frame(self.spark, rows, raw_ddl(self.spark, name, entry))

        tested = pipeline.model_copy(update={"sources": entries})
        return tested, build_frames(self.spark, tested, open_source)


def reduce_pipeline(pipeline: Pipeline, name: str) -> Pipeline:
    """Reduce a pipeline to what that view or source reads, and the queries that write one of these.

    Sources that a test does not need are not opened. This saves time, and a missing table does not fail the test.
    """
    graph = PipelineGraph.of(pipeline)
    upstream_names: set[str] = set()
    waiting = [name]
    while waiting:
        added = {*graph.behind(waiting.pop())} - upstream_names
        upstream_names |= added
        waiting += [mentioned for view in added for mentioned in _mentioned_names(pipeline, graph, view)]
    return pipeline.model_copy(
        update={
            "sources": {key: entry for key, entry in pipeline.sources.items() if key in upstream_names},
            "views": {key: view for key, view in pipeline.views.items() if key in upstream_names},
            "queries": {
                key: query
                for key, query in pipeline.queries.items()
                if graph.writes.get(key) in upstream_names
            },
        }
    )


def _mentioned_names(pipeline: Pipeline, graph: PipelineGraph, view: str) -> list[str]:
    """Return names in a view's SQL that may be tables although the parser did not find them, such as `values`.

    Only streams are considered, because they cost nothing. Other names are considered if no table was found at all.
    """
    text = (pipeline.views[view].sql or "") if view in pipeline.views else ""
    names = [name for name, entry in pipeline.sources.items() if not entry.static]
    if not graph.reads.get(view):
        names = [*pipeline.sources, *pipeline.views]
    return [name for name in names if name != view and re.search(rf"\b{name}\b", text, re.IGNORECASE)]
