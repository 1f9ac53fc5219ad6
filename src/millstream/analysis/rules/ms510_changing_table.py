"""Each batch reads a table again, and a column of this table is a grouping key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Aggregate, Deduplicate, StatefulFunction, StatefulOperator
from millstream.analysis.rule_context import Code, Facts
from millstream.connectors.api.values.replay_behaviour import Replayability

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Column, PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report columns of such a table among the keys of a stateful operator."""
    if facts is None:
        return
    for operator in query.of(StatefulOperator):
        for column in _list_keys(operator):
            source = next((source for source, _ in column.origins if _may_change(facts, source)), None)
            if source is None:
                continue
            yield CODE.note(
                f"query '{query.name}' keeps state by '{column.name}' of the table '{source}', "
                "which each batch reads again",
                operator.span or facts.places.key("sources", source),
                why="if the table changes between a crash and the repetition of the batch, a row may be in one "
                "group in the sink and in another group in the state",
                fix="set 'version' on the source, so that all batches read the same version of the table; to use "
                "a newer version, change it and restart",
                query=query.name,
            )
            break


def _list_keys(operator: StatefulOperator) -> tuple[Column, ...]:
    """Return the columns by which an operator keys its state; empty for a join, which stores whole rows."""
    return operator.keys if isinstance(operator, Aggregate | Deduplicate | StatefulFunction) else ()


def _may_change(facts: Facts, name: str) -> bool:
    """Return whether the source is a static table whose current version each batch reads."""
    entry = facts.pipeline.sources.get(name)
    if entry is None or not entry.static or not entry.source.is_reread_each_batch:
        return False
    return entry.source.replay(static=True).how is not Replayability.EXACT
