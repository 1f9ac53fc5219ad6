"""Two queries merge into the same table, so that they wait for each other or repeat their merges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report each query that merges into the target of an earlier query; the connector describes the cost.

    MS314 reports targets that two queries must not share at all.
    """
    first_writers: dict[str, str] = {}
    for query, number, entry in facts.sinks():
        mode = facts.pipeline.queries[query].output_mode
        cost = entry.sink.conflict_cost(mode)
        if not cost or entry.sink.is_sole_writer or mode is OutputMode.COMPLETE:
            continue
        for place in sorted(entry.sink.writes_to()):
            other = first_writers.setdefault(place, query)
            if other == query:
                continue
            description = entry.sink.describe().replace(f"{facts.pipeline.folder}/", "")
            yield CODE.note(
                f"queries '{other}' and '{query}' merge into {description}, so their commits conflict",
                facts.places.key("queries", query, "to", number, "sink"),
                why=cost,
                fix="combine their rows with UNION ALL in one view, and write it with one query",
                query=query,
            )
