"""A source that removes what it has read, while somebody else reads the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Another query over the same source, or another source over the same place."""
    sources = facts.pipeline.sources
    for name, entry in sources.items():
        if not entry.source.taken_away():
            continue
        here = entry.source.reads_from()
        others = [
            (other, query)
            for other in sources
            if other == name or sources[other].source.reads_from() & here
            for query in facts.readers(other)
        ]
        mine = next(iter(facts.readers(name)), None)
        rest = [(other, query) for other, query in others if (other, query) != (name, mine)]
        if mine is None or not rest:
            continue
        other, query = rest[0]
        through = "" if other == name else f" through source '{other}'"
        yield CODE.error(
            f"source '{name}' removes files once query '{mine}' has read them, "
            f"and query '{query}' reads them{through} too",
            facts.places.value("sources", name, "source", "clean_source"),
            why="each query cleans up by itself: files go before the slower one has read them",
            fix="leave out clean_source, or write both from one query with two sinks",
            query=mine,
        )
