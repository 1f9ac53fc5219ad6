"""A function of batches that adds rows without knowing which batch they are of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


# Nothing is kept there.
_SHOWN = frozenset({"console", "noop", "memory"})


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - its source alone
    """Writes that only add, in a function that does nothing with the batch's number."""
    for sink in query.sinks:
        function = sink.function
        if function is None or function.uses_batch_id:
            continue
        for write in function.writes:
            if not write.adds or write.format in _SHOWN:
                continue
            form = f" to {write.format}" if write.format else ""
            yield CODE.warning(
                f"query '{query.name}' adds the rows of a batch{form} once more when the batch comes again",
                write.span,
                label="appends",
                why="Spark hands a batch over again, with the same number, when a crash came before its commit",
                fix="merge by a key; or write the batch's number with the rows in one transaction, and pass over a "
                "number that is there (Delta does it with the options txnAppId and txnVersion)",
                query=query.name,
            )
            break
