"""The names that a test may use of its pipeline: sources, views and sinks of one query."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.pipeline.graph import Graph

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline


@dataclass(frozen=True)
class Names:
    """A pipeline and the query that is played; None for what is not known, which then goes unchecked."""

    pipeline: Pipeline | None
    graph: Graph | None
    query: str | None

    @classmethod
    def of(cls, pipeline: Pipeline | None, query: str | None) -> Names:
        """The names of a query of a pipeline."""
        return cls(pipeline, Graph.of(pipeline) if pipeline else None, query)

    @property
    def streams(self) -> list[str]:
        """The streams that the query reads."""
        if self.pipeline is None or self.graph is None:
            return []
        names = self.graph.upstream(self.query) if self.query else list(self.pipeline.sources)
        return [name for name in names if not self.pipeline.sources[name].static]

    @property
    def blind(self) -> bool:
        """May the query read what is not seen? A view in whose SQL or function no name was found tells nothing."""
        if self.pipeline is None or self.graph is None or not self.written:
            return True
        return any(not self.graph.reads.get(name) for name in self.behind if name in self.pipeline.views)

    def feeds(self, source: str) -> bool:
        """Does the query read that stream, as far as can be told?

        A name like `values`, which SQL has as a word too, is taken for a table where a view's text holds it.
        """
        if self.blind or self.pipeline is None or self.graph is None or self.query is None:
            return True
        texts = [self.pipeline.views[name].sql or "" for name in self.behind if name in self.pipeline.views]
        said = any(re.search(rf"\b{re.escape(source)}\b", text, re.IGNORECASE) for text in texts)
        return said or source in self.graph.upstream(self.query)

    @property
    def sinks(self) -> list[str]:
        """The names by which the query's sinks can be called: the kind where it tells which, and the key."""
        if self.pipeline is None or self.query not in self.pipeline.queries:
            return []
        # Here and not above: only a test that names a sink needs what knows of Spark.
        from millstream.runtime.recording import sink_keys  # noqa: PLC0415

        kinds = [entry.sink.kind for entry in self.pipeline.queries[self.query].to]
        return [*(one for one in kinds if kinds.count(one) == 1), *sink_keys(self.pipeline, self.query)]

    @property
    def behind(self) -> list[str]:
        """The views and sources that the query needs, views first."""
        if self.pipeline is None or self.graph is None or self.query is None:
            return []
        found = set(self.graph.behind(self.written))
        return [name for name in (*self.pipeline.views, *self.pipeline.sources) if name in found]

    @property
    def written(self) -> str:
        """The view or source that the query writes."""
        return self.graph.writes.get(self.query, "") if self.graph and self.query else ""
