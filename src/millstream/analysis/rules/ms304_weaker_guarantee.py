"""The guarantee of a sink is weaker than the spec demands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.delivery_guarantee import compute_guarantees
from millstream.analysis.rule_context import Code, Facts
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.delivery_guarantee import Promise
    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report demands that the sources and sinks alone make impossible, whatever the views do."""
    if not any(entry.guarantee for _, _, entry in facts.sinks()):
        return
    for promise in compute_guarantees(facts.pipeline, (), facts.places):
        if _is_weaker(facts, promise):
            yield _build_finding(facts, promise)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report demands that the query's plan makes impossible."""
    if facts is None or not any(entry.guarantee for _, _, entry in facts.sinks()):
        return
    reported = {
        (promise.query, promise.number)
        for promise in compute_guarantees(facts.pipeline, (), facts.places)
        if _is_weaker(facts, promise)
    }
    for promise in compute_guarantees(facts.pipeline, (query,), facts.places):
        is_of_query = promise.query == query.name and (promise.query, promise.number) not in reported
        if is_of_query and _is_weaker(facts, promise):
            yield _build_finding(facts, promise)


def _find_demand(facts: Facts, promise: Promise) -> Guarantee | None:
    return facts.pipeline.queries[promise.query].to[promise.number].guarantee


def _is_weaker(facts: Facts, promise: Promise) -> bool:
    demanded = _find_demand(facts, promise)
    order = list(Guarantee)
    return demanded is not None and order.index(promise.guarantee) > order.index(demanded)


def _build_finding(facts: Facts, promise: Promise) -> Finding:
    weakest = promise.weakest
    reason = weakest.text if weakest else promise.reasons[-1]
    if weakest and weakest.span:
        reason += f" ({weakest.span.file}:{weakest.span.line})"
    return CODE.error(
        f"sink '{promise.sink}' is {promise.guarantee}, but the spec demands {_find_demand(facts, promise)}",
        facts.places.value("queries", promise.query, "to", promise.number, "guarantee"),
        why=reason,
        fix=f"remove this cause, choose another sink, or accept the weaker guarantee with 'guarantee: "
        f"{promise.guarantee}'",
        query=promise.query,
    )
