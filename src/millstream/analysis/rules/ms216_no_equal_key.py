"""A stream-stream join or a session window has no key, so that the query fails at its first batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Aggregate, Join, WindowKind
from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Report joins of two streams without an equality, and session windows without another key."""
    for operator in query.of(Join):
        if not operator.is_stream_stream or operator.keys:
            continue
        yield CODE.error(
            f"{event_time.owner_label(query, operator)} joins two streams without an equality condition",
            event_time.find_span(query, operator),
            label="joins here",
            why="Spark fails at the first batch, because it stores the rows of both streams by their join key",
            fix="add an equality such as 'l.id = r.id' to the condition",
            query=query.name,
        )
    for aggregate in query.of(Aggregate):
        if aggregate.window and aggregate.window.kind is WindowKind.SESSION and len(aggregate.keys) == 1:
            yield CODE.error(
                f"{event_time.owner_label(query, aggregate)} groups by a session window and nothing else",
                event_time.find_span(query, aggregate),
                label="groups here",
                why="Spark fails at the first batch, because a session window needs another key",
                fix="also group by a key column, such as the user",
                query=query.name,
            )
