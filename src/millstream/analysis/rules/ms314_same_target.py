"""Two sinks of a query have the same target, or two queries write to a target which only one query may write to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report targets with conflicting writers.

    Queries that append to one table, or merge into it, do not conflict.
    """
    writers: dict[str, list[str]] = {}
    single_writers: dict[str, str] = {}
    for query, number, entry in facts.sinks():
        span = facts.places.key("queries", query, "to", number, "sink")
        replaces = facts.pipeline.queries[query].output_mode is OutputMode.COMPLETE
        for place in sorted(entry.sink.writes_to()):
            previous = writers.setdefault(place, [])
            target = f"{entry.sink.describe().replace(f'{facts.pipeline.folder}/', '')}"
            if query in previous:
                yield CODE.error(
                    f"query '{query}' writes {target} twice",
                    span,
                    why="every row would be written twice",
                    fix="remove one of the two",
                    query=query,
                )
            others = [previous_query for previous_query in previous if previous_query != query]
            if entry.sink.is_sole_writer:
                single_writers.setdefault(place, query)
            if others and place in single_writers:
                yield CODE.error(
                    f"queries '{others[0]}' and '{query}' write {target}, which accepts the changes of only one "
                    "query",
                    span,
                    why="if one query changes a row while the other deletes it, the deleted row may come back",
                    fix="combine their rows with UNION ALL in one view, and write it with one query",
                    query=query,
                )
            for other in others:
                other_replaces = facts.pipeline.queries[other].output_mode is OutputMode.COMPLETE
                if not (replaces or other_replaces):
                    continue
                replacing, replaced = (query, other) if replaces else (other, query)
                yield CODE.error(
                    f"queries '{other}' and '{query}' write {target}, and '{replacing}' replaces all its rows",
                    span,
                    why=f"in complete mode, each batch of '{replacing}' deletes the rows of '{replaced}'",
                    fix="give each query its own target, or use output mode update with a key in both queries",
                    query=query,
                )
            previous.append(query)
