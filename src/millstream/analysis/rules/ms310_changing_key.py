"""A key of a sink that changes when its row changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Aggregate
from millstream.analysis.facts import Code, Facts
from millstream.analysis.lineage import made_of, outputs
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
# What was the first value of a group stays the first.
_STAYS = frozenset({"first", "first_value", "any_value"})


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Update mode alone: in append mode a row comes once, when it is final."""
    aggregates = list(query.of(Aggregate))
    if facts is None or query.output_mode is not OutputMode.UPDATE or len(aggregates) != 1:
        return
    made = outputs(aggregates[0]) or ()
    low = [column.name.lower() for column in query.root.columns]
    for number, sink in enumerate(query.sinks):
        for name in sink.key:
            at = low.index(name.lower()) if name.lower() in low else None
            held = None if at is None else made_of(query.root, at, aggregates[0])
            calls = {
                node.function: node.text
                for one in held or ()
                if one < len(made)
                for node in made[one].walk()
                if node in aggregates[0].functions and node.function not in _STAYS
            }
            if calls:
                text = next(iter(calls.values()))
                yield CODE.warning(
                    f"merge_on holds '{name}', which is {text} and changes with every row of its group",
                    facts.places.value("queries", query.name, "to", number, "sink", "merge_on"),
                    why="a row whose key has changed is added, and the row of before stays beside it",
                    fix="merge on what the view groups by",
                    query=query.name,
                )
