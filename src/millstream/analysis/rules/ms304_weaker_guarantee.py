"""A sink that keeps less than the spec demands of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.analysis.guarantee import promises
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.guarantee import Promise
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """What sources and sinks alone make impossible, whatever the views do."""
    if not any(entry.guarantee for _, _, entry in facts.sinks()):
        return
    for promise in promises(facts.pipeline, (), facts.places):
        if _weaker(facts, promise):
            yield _finding(facts, promise)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """What the query's plan takes away besides."""
    if facts is None or not any(entry.guarantee for _, _, entry in facts.sinks()):
        return
    told = {
        (one.query, one.number) for one in promises(facts.pipeline, (), facts.places) if _weaker(facts, one)
    }
    for promise in promises(facts.pipeline, (query,), facts.places):
        mine = promise.query == query.name and (promise.query, promise.number) not in told
        if mine and _weaker(facts, promise):
            yield _finding(facts, promise)


def _demand(facts: Facts, promise: Promise) -> Guarantee | None:
    return facts.pipeline.queries[promise.query].to[promise.number].guarantee


def _weaker(facts: Facts, promise: Promise) -> bool:
    demanded = _demand(facts, promise)
    order = list(Guarantee)
    return demanded is not None and order.index(promise.guarantee) > order.index(demanded)


def _finding(facts: Facts, promise: Promise) -> Finding:
    weakest = promise.weakest
    why = weakest.text if weakest else promise.reasons[-1]
    if weakest and weakest.span:
        why += f" ({weakest.span.file}:{weakest.span.line})"
    return CODE.error(
        f"sink '{promise.sink}' is {promise.guarantee}, and {_demand(facts, promise)} is demanded of it",
        facts.places.value("queries", promise.query, "to", promise.number, "guarantee"),
        why=why,
        fix=f"mend that link or choose another sink, or write 'guarantee: {promise.guarantee}'",
        query=promise.query,
    )
