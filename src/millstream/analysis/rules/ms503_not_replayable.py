"""A stream that cannot be read again, beside one that can or before a sink that relies on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.model import SinkEntry

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Each such source once, for the first query whose rows it may cost.

    Rows that are made up cost nothing when they are alone: a query of them is a trial.
    """
    told: set[str] = set()
    for query in facts.graph.writes:
        streams = [name for name in facts.graph.upstream(query) if not facts.pipeline.sources[name].static]
        kinds = {name: facts.pipeline.sources[name].source for name in streams}
        kept = [name for name in streams if kinds[name].replayable]
        for name in streams:
            trial = kinds[name].made_up and not kept
            if kinds[name].replayable or trial or name in told:
                continue
            if not (kept or any(_relies(entry, facts, query) for entry in facts.pipeline.queries[query].to)):
                continue
            told.add(name)
            beside = f" beside {_names(kept)}" if kept else ""
            yield CODE.warning(
                f"query '{query}' reads source '{name}'{beside}, which cannot give a batch again",
                facts.places.value("sources", name, "source"),
                why="a batch that is repeated after a crash then holds other rows than those it is booked with",
                fix="read it from a topic or a table that keeps its records, or give it a query of its own",
                query=query,
            )


def _relies(entry: SinkEntry, facts: Facts, query: str) -> bool:
    """Does the sink promise a row's effect once, if its sources can be read again?"""
    kept, _ = entry.sink.guarantee(facts.pipeline.queries[query].output_mode)
    return kept in (Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE)


def _names(sources: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in sources)
