"""A source deletes or moves files after a query has read them, although another query reads the same files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report another query over the same source, or another source over the same location."""
    sources = facts.pipeline.sources
    for name, entry in sources.items():
        if not entry.source.removes_read_files():
            continue
        locations = entry.source.reads_from()
        others = [
            (other, query)
            for other in sources
            if other == name or sources[other].source.reads_from() & locations
            for query in facts.readers(other)
        ]
        first_reader = next(iter(facts.readers(name)), None)
        other_readers = [(other, query) for other, query in others if (other, query) != (name, first_reader)]
        if first_reader is None or not other_readers:
            continue
        other, query = other_readers[0]
        through = "" if other == name else f" through source '{other}'"
        yield CODE.error(
            f"source '{name}' deletes files once query '{first_reader}' has read them, "
            f"and query '{query}' reads them{through} too",
            facts.places.value("sources", name, "source", "clean_source"),
            why="each query deletes the files that it has read, so files are missing before the slower query has "
            "read them",
            fix="remove clean_source, or use one query with two sinks",
            query=first_reader,
        )
