"""A query that reads what it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Its own sinks, and those of queries that read on from them."""
    reads = {
        query: {
            place: name
            for name in facts.graph.upstream(query)
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
        reached, behind = set(writes[query]), {query}
        while following := [other for other in reads if other not in behind and set(reads[other]) & reached]:
            behind |= set(following)
            reached |= {place for other in following for place in writes[other]}
        if back := sorted(set(places) & reached):
            source = places[back[0]]
            through = "" if back[0] in writes[query] else ", through other queries"
            yield CODE.error(
                f"query '{query}' reads source '{source}', which it writes itself{through}",
                facts.places.value("sources", source, "source"),
                why="each batch makes rows for the next one: it never ends, and its sink grows without bound",
                fix="write to another place",
                query=query,
            )
