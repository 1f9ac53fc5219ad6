"""A query reads what it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Follow each query's sinks, and those of queries that read from them, back to its own sources."""
    reads = {
        query: {
            place: name
            for name in facts.graph.sources_of(query)
            if not facts.pipeline.sources[name].static
            for place in facts.pipeline.sources[name].source.reads_from()
        }
        for query in facts.graph.writes
    }
    writes = {
        query: {place for entry in facts.pipeline.queries[query].to for place in entry.sink.writes_to()}
        for query in facts.graph.writes
    }
    for query, places in reads.items():
        reachable, downstream = set(writes[query]), {query}
        while following := [
            other for other in reads if other not in downstream and set(reads[other]) & reachable
        ]:
            downstream |= set(following)
            reachable |= {place for other in following for place in writes[other]}
        if loops := sorted(set(places) & reachable):
            source = places[loops[0]]
            through = "" if loops[0] in writes[query] else ", through other queries"
            yield CODE.error(
                f"query '{query}' reads source '{source}', which it writes itself{through}",
                facts.places.value("sources", source, "source"),
                why="each batch writes rows that a later batch reads again: the query never catches up, and its "
                "sink grows without limit",
                fix="write to a target that the query does not read",
                query=query,
            )
