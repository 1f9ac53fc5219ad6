"""Rows with two event-time columns reach a stateful operator, so that the query fails at its first batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.column_pruning import find_used_columns
from millstream.analysis.query.plan_model import Aggregate, Deduplicate, Join
from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Column, Operator, PlannedQuery, StatefulOperator
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Check the keys of an aggregation, and all used columns of a deduplication or a side of a stream-stream join."""
    for operator in (*query.of(Aggregate), *query.of(Deduplicate), *query.of(Join)):
        for columns in _list_inputs(query, operator):
            times = [column.name for column in columns if column.delay is not None]
            if len(times) < 2:
                continue
            yield CODE.error(
                f"{event_time.owner_label(query, operator)} passes rows with two event times, "
                f"'{times[0]}' and '{times[1]}', "
                f"to {_OPERATOR_NAMES[type(operator)]}",
                event_time.find_span(query, operator),
                label="keeps state here",
                why="Spark cannot tell to which of the two the watermark applies, and fails at the first batch",
                fix=f"do not select '{times[1]}', or convert it to another type: 'CAST({times[1]} AS STRING)'",
                query=query.name,
            )
            break


_OPERATOR_NAMES: dict[type[StatefulOperator], str] = {
    Aggregate: "an aggregation",
    Deduplicate: "a deduplication",
    Join: "a join of streams",
}


def _list_inputs(query: PlannedQuery, operator: Operator) -> list[list[Column]]:
    if isinstance(operator, Aggregate):
        return [list(operator.keys)]
    if isinstance(operator, Join) and not operator.is_stream_stream:
        return []
    return find_used_columns(query.root, operator)
