"""One place that is written twice: by two sinks of a query, or by a query that replaces what others write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Queries that add to one table, or merge into it, do not harm each other and are not judged."""
    seen: dict[str, list[str]] = {}
    for query, number, entry in facts.sinks():
        span = facts.places.key("queries", query, "to", number, "sink")
        replaces = facts.pipeline.queries[query].output_mode is OutputMode.COMPLETE
        for place in sorted(entry.sink.writes_to()):
            before = seen.setdefault(place, [])
            what = f"{entry.sink.describe().replace(f'{facts.pipeline.folder}/', '')}"
            if query in before:
                yield CODE.error(
                    f"query '{query}' writes {what} twice",
                    span,
                    why="every row would be there twice, or be written over by itself",
                    fix="remove one of the two",
                    query=query,
                )
            for other in (one for one in before if one != query):
                theirs = facts.pipeline.queries[other].output_mode is OutputMode.COMPLETE
                if not (replaces or theirs):
                    continue
                whole, lost = (query, other) if replaces else (other, query)
                yield CODE.error(
                    f"queries '{other}' and '{query}' write {what}, and '{whole}' replaces all rows of it",
                    span,
                    why=f"each batch of '{whole}' removes what '{lost}' has written",
                    fix="give each its own place, or write both in output mode update with a key",
                    query=query,
                )
            before.append(query)
