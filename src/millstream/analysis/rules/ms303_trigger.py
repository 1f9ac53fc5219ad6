"""Triggers that Spark refuses with a pipeline's sinks, or that it will give up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.edits import instead
from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Sinks are written batch by batch, which continuous and real-time processing have not."""
    for query, entry in facts.pipeline.queries.items():
        trigger = facts.pipeline.trigger(query)
        own = ("queries", query, "trigger") if entry.trigger else ("defaults", "trigger")
        span = facts.places.value(*own)
        if trigger.continuous or trigger.real_time:
            word = "continuous" if trigger.continuous else "real_time"
            yield CODE.error(
                f"query '{query}' has a {word} trigger, and its sinks are written in batches",
                span,
                why="Spark hands over rows one by one then: no batch could be recognised after a crash",
                fix="write a time, such as 'trigger: 1 second', or 'available_now'",
                query=query,
            )
        elif trigger.once:
            yield CODE.warning(
                f"query '{query}' has the trigger 'once'",
                span,
                why="it reads all there is in one batch, whatever a source's limits say; Spark deprecates it",
                fix="write 'trigger: available_now'",
                # Where a source limits its batches, the same rows come in several.
                edit=instead(facts.places, "available_now", *own, safe=not _limited(facts, query)),
                query=query,
            )


def _limited(facts: Facts, query: str) -> bool:
    return any(facts.pipeline.sources[name].source.limited() for name in facts.graph.upstream(query))
