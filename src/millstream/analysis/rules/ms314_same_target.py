"""One place that is written twice: by two sinks of a query, or beside a query that must write it alone."""

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
    sole: dict[str, str] = {}
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
            others = [one for one in before if one != query]
            if entry.sink.sole:
                sole.setdefault(place, query)
            if others and place in sole:
                yield CODE.error(
                    f"queries '{others[0]}' and '{query}' write {what}, which takes the changes of one query alone",
                    span,
                    why="a change that one of them writes while the other deletes its row may bring the row back",
                    fix="bring their rows together with UNION ALL in one view, and write that with one query",
                    query=query,
                )
            for other in others:
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
