"""A function of batches that computes the same batch several times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - its source alone
    """Two actions or more on one way through the function, and nothing that keeps the batch between them."""
    for sink in query.sinks:
        function = sink.function
        if function is None or function.persisted or len(function.actions) < 2:
            continue
        yield CODE.warning(
            f"a batch of query '{query.name}' is computed {len(function.actions)} times",
            function.actions[1],
            label="computes it again",
            why="each action reads the sources, loads the state and calls Python functions anew; what is not the "
            "same each time, such as a random number, then differs between the results",
            fix="call batch.persist() before the first action and batch.unpersist() after the last",
            query=query.name,
        )
