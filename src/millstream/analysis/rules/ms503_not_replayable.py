"""A source that cannot be replayed is next to one that can, or before a sink that relies on replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.model import SinkEntry

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report each such source once, for the first query that may lose rows.

    Generated rows alone are no loss: a query that reads only such rows is a trial.
    """
    reported: set[str] = set()
    for query in facts.graph.writes:
        streams = [name for name in facts.graph.sources_of(query) if not facts.pipeline.sources[name].static]
        source_models = {name: facts.pipeline.sources[name].source for name in streams}
        replayable = [name for name in streams if source_models[name].is_replayable]
        for name in streams:
            is_trial = source_models[name].is_generated and not replayable
            if source_models[name].is_replayable or is_trial or name in reported:
                continue
            if not (
                replayable
                or any(_relies_on_replay(entry, facts, query) for entry in facts.pipeline.queries[query].to)
            ):
                continue
            reported.add(name)
            suffix = f" next to {_join_names(replayable)}" if replayable else ""
            yield CODE.warning(
                f"query '{query}' reads source '{name}'{suffix}, which cannot replay a batch",
                facts.places.value("sources", name, "source"),
                why="when a batch is repeated after a crash, this source returns different rows than the first "
                "time",
                fix="read the rows from a topic or table, which stores them, or read this source in a separate "
                "query",
                query=query,
            )


def _relies_on_replay(entry: SinkEntry, facts: Facts, query: str) -> bool:
    """Return whether the sink guarantees exactly-once effects if its sources can be replayed."""
    guarantee, _ = entry.sink.guarantee(facts.pipeline.queries[query].output_mode)
    return guarantee in (Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE)


def _join_names(sources: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in sources)
