"""A foreachBatch function computes the same batch several times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - its source alone
    """Report two or more actions on one path through the function without a persisted batch."""
    for sink in query.sinks:
        function = sink.function
        if function is None or function.is_persisted or len(function.actions) < 2:
            continue
        yield CODE.warning(
            f"a batch of query '{query.name}' is computed {len(function.actions)} times",
            function.actions[1],
            label="computes it again",
            why="each action reads the sources, loads the state and calls the Python functions again; values that "
            "change each time, such as random numbers, are then different in each result",
            fix="call batch.persist() before the first action and batch.unpersist() after the last",
            query=query.name,
        )
