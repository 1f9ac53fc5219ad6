"""The key of a sink changes when the row changes, so that the old row is never replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.column_lineage import output_expressions, trace_column
from millstream.analysis.query.plan_model import Aggregate
from millstream.analysis.rule_context import Code, Facts
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
# The first value of a group does not change.
_STAYS = frozenset({"first", "first_value", "any_value"})


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Check update mode only: in append mode a row is written once, when it is final."""
    aggregates = list(query.of(Aggregate))
    if facts is None or query.output_mode is not OutputMode.UPDATE or len(aggregates) != 1:
        return
    outputs_below = output_expressions(aggregates[0]) or ()
    lower_names = [column.name.lower() for column in query.root.columns]
    for number, sink in enumerate(query.sinks):
        for name in sink.key:
            position = lower_names.index(name.lower()) if name.lower() in lower_names else None
            inputs = None if position is None else trace_column(query.root, position, aggregates[0])
            calls = {
                node.function: node.text
                for input_position in inputs or ()
                if input_position < len(outputs_below)
                for node in outputs_below[input_position].walk()
                if node in aggregates[0].functions and node.function not in _STAYS
            }
            if calls:
                text = next(iter(calls.values()))
                path = ("queries", query.name, "to", number, "sink")
                setting = facts.key_setting(query.name, number)
                is_merged = setting == "merge_on"
                yield CODE.warning(
                    f"{setting} contains '{name}', which is {text} and changes with every row of its group",
                    facts.places.value(*path, setting),
                    why="when the value changes, the sink does not find the old row: it adds a new row, and the "
                    "old one stays in the table"
                    if is_merged
                    else "when the value changes, the record has another key: readers that use the newest record "
                    "of each key keep the old one too",
                    fix=f"{'merge on' if is_merged else 'use as key'} the columns that the view groups by",
                    query=query.name,
                )
