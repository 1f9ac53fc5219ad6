"""The sources of one streaming query of a test, and the frames that are made of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.pipeline.graph import Graph
from millstream.runtime.assemble import assemble, read
from millstream.testing.feeding import Feeder
from millstream.testing.memory import Line, fixed, raw_ddl, reread

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry
    from millstream.testing.case import Row


@dataclass
class Lines:
    """A line for each streaming source, by name. They outlive a restart, as topics do."""

    spark: SparkSession
    lines: dict[str, Line] = field(default_factory=dict)

    def add(self, raw: Mapping[str, list[str]]) -> None:
        """One more portion of each source that is named."""
        for name, rows in raw.items():
            self.of(name).add(rows)

    def reset(self) -> None:
        """Empty all lines; frames that are made of them stay."""
        for line in self.lines.values():
            line.reset()

    def of(self, name: str) -> Line:
        """The line of a source, made when it is first asked for."""
        return (
            self.lines.setdefault(name, Line(self.spark, name))
            if name not in self.lines
            else self.lines[name]
        )

    def frames(
        self, pipeline: Pipeline, static: Mapping[str, tuple[Row, ...]], now: datetime
    ) -> tuple[Pipeline, dict[str, DataFrame]]:
        """Sources and views as frames, and the pipeline whose fed sources can be read again.

        Raises what the user's functions and Spark's analysis raise.
        """
        ddls: dict[str, str] = {}
        entries: dict[str, SourceEntry] = {}
        for name, entry in pipeline.sources.items():
            if entry.static:
                entries[name] = entry
            else:
                ddls[name] = raw_ddl(self.spark, name, entry)
                entries[name] = reread(entry, self.of(name), ddls[name])

        def opened(name: str, entry: SourceEntry) -> DataFrame:
            if not entry.static:
                return self.of(name).frame(ddls[name])
            if name not in static:
                return read(self.spark, name, entry)
            rows = Feeder(name).raw(entry, static[name], now)
            return fixed(self.spark, rows, raw_ddl(self.spark, name, entry))

        tested = pipeline.model_copy(update={"sources": entries})
        return tested, assemble(self.spark, tested, opened)


def part(pipeline: Pipeline, name: str) -> Pipeline:
    """The pipeline with only what that view or source reads, and the queries that are made of it.

    What a test does not need is not made: it costs time, and a table that is not there fails nobody.
    """
    graph = Graph.of(pipeline)
    behind: set[str] = set()
    waiting = [name]
    while waiting:
        found = {*graph.behind(waiting.pop())} - behind
        behind |= found
        waiting += [one for view in found for one in _said(pipeline, graph, view)]
    return pipeline.model_copy(
        update={
            "sources": {key: entry for key, entry in pipeline.sources.items() if key in behind},
            "views": {key: view for key, view in pipeline.views.items() if key in behind},
            "queries": {
                key: query for key, query in pipeline.queries.items() if graph.writes.get(key) in behind
            },
        }
    )


def _said(pipeline: Pipeline, graph: Graph, view: str) -> list[str]:
    """The names in a view's text that may be tables of it though none was found: `values` is a word of SQL as well.

    Streams cost nothing to have; what else a pipeline has only where no table was found at all.
    """
    text = (pipeline.views[view].sql or "") if view in pipeline.views else ""
    names = [name for name, entry in pipeline.sources.items() if not entry.static]
    if not graph.reads.get(view):
        names = [*pipeline.sources, *pipeline.views]
    return [name for name in names if name != view and re.search(rf"\b{name}\b", text, re.IGNORECASE)]
