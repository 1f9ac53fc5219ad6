"""Collect the names that a test may use: the sources, views and sinks of one query."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.pipeline.graph import PipelineGraph

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline


@dataclass(frozen=True)
class KnownNames:
    """A pipeline and the query under test. Names are not checked if one of them is None."""

    pipeline: Pipeline | None
    graph: PipelineGraph | None
    query: str | None

    @classmethod
    def of(cls, pipeline: Pipeline | None, query: str | None) -> KnownNames:
        """Create the names of one query of a pipeline."""
        return cls(pipeline, PipelineGraph.of(pipeline) if pipeline else None, query)

    @property
    def streams(self) -> list[str]:
        """The streaming sources that the query reads."""
        if self.pipeline is None or self.graph is None:
            return []
        names = self.graph.sources_of(self.query) if self.query else list(self.pipeline.sources)
        return [name for name in names if not self.pipeline.sources[name].static]

    @property
    def may_read_unknown(self) -> bool:
        """Whether the query may read unknown names, because a view's SQL or function names no table."""
        if self.pipeline is None or self.graph is None or not self.query_input:
            return True
        return any(not self.graph.reads.get(name) for name in self.behind if name in self.pipeline.views)

    def may_read(self, source: str) -> bool:
        """Return whether the query may read that stream.

        A name that is also an SQL keyword, like `values`, counts as read if a view's SQL contains it.
        """
        if self.may_read_unknown or self.pipeline is None or self.graph is None or self.query is None:
            return True
        texts = [self.pipeline.views[name].sql or "" for name in self.behind if name in self.pipeline.views]
        is_mentioned = any(re.search(rf"\b{re.escape(source)}\b", text, re.IGNORECASE) for text in texts)
        return is_mentioned or source in self.graph.sources_of(self.query)

    @property
    def sinks(self) -> list[str]:
        """The names of the query's sinks: the kind if it is unique, and the key."""
        if self.pipeline is None or self.query not in self.pipeline.queries:
            return []
        # Imported here, because only a test that names a sink needs this module, which imports Spark.
        from millstream.engine.sink_keys import plain_sink_keys  # noqa: PLC0415

        kinds = [entry.sink.kind for entry in self.pipeline.queries[self.query].to]
        return [
            *(kind for kind in kinds if kinds.count(kind) == 1),
            *plain_sink_keys(self.pipeline, self.query),
        ]

    @property
    def behind(self) -> list[str]:
        """The views and sources that the query depends on, views first."""
        if self.pipeline is None or self.graph is None or self.query is None:
            return []
        upstream = set(self.graph.behind(self.query_input))
        return [name for name in (*self.pipeline.views, *self.pipeline.sources) if name in upstream]

    @property
    def query_input(self) -> str:
        """The view or source that the query writes."""
        return self.graph.writes.get(self.query, "") if self.graph and self.query else ""
