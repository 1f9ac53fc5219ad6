"""A table that is read anew by each batch and decides which group of state a row counts for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Aggregate, Deduplicate, Stateful, StatefulFunction
from millstream.analysis.facts import Code, Facts
from millstream.connectors.source import Replays

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Column, PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Columns of such a table among the keys of an operator that keeps state."""
    if facts is None:
        return
    for operator in query.of(Stateful):
        for column in _keys(operator):
            source = next((source for source, _ in column.origins if _changes(facts, source)), None)
            if source is None:
                continue
            yield CODE.note(
                f"query '{query.name}' keeps state by '{column.name}' of the table '{source}', "
                "which each batch reads anew",
                operator.span or facts.places.key("sources", source),
                why="when the table changes between a crash and the repetition of its batch, a row counts for one "
                "group in the sink and for another in the state",
                fix="read one version of the table: set version, and raise it with a restart",
                query=query.name,
            )
            break


def _keys(operator: Stateful) -> tuple[Column, ...]:
    """What it keeps state by; nothing for a join, which keeps rows whole."""
    return operator.keys if isinstance(operator, Aggregate | Deduplicate | StatefulFunction) else ()


def _changes(facts: Facts, name: str) -> bool:
    """Is it a static table that batches see as it stands?"""
    entry = facts.pipeline.sources.get(name)
    if entry is None or not entry.static or not entry.source.reread:
        return False
    return entry.source.replay(static=True).how is not Replays.EXACT
