"""Triggers without batches, where something of a query needs batches; and one that Spark will give up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.edits import instead
from millstream.analysis.facts import Code, Facts
from millstream.connectors import registry
from millstream.pipeline.model import OnError, OnMalformed
from millstream.spec.expectation import Otherwise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding, Span

CODE = Code.of(__name__)

_TIMES = "a time as the trigger, such as '1 second'"


def check(facts: Facts) -> Iterator[Finding]:
    """With a continuous or real-time trigger Spark hands over rows one by one: what needs batches is not there."""
    for query, entry in facts.pipeline.queries.items():
        trigger = facts.pipeline.trigger(query)
        own = ("queries", query, "trigger") if entry.trigger else ("defaults", "trigger")
        span = facts.places.value(*own)
        if trigger.flows:
            found = [*_sinks(facts, query, trigger.flows), *_sources(facts, query, trigger.flows)]
            yield from found or [_without(query, trigger.flows, span)]
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


def _without(query: str, flows: str, span: Span | None) -> Finding:
    """What such a query does not have, where all else fits."""
    return CODE.note(
        f"query '{query}' has a {flows} trigger: rows are written one by one, each at least once",
        span,
        why="after a stop or a crash the rows since the last checkpoint are written again: no batch tells them; "
        "nothing is set aside, and a task runs without end on each partition",
        query=query,
    )


def _sinks(facts: Facts, query: str, flows: str) -> Iterator[Finding]:
    """One sink, of a kind that Spark writes itself, with nothing that is done to batches."""
    entries = facts.pipeline.queries[query].to
    if len(entries) > 1:
        yield CODE.error(
            f"query '{query}' has a {flows} trigger and {len(entries)} sinks",
            facts.places.value("queries", query, "to"),
            why="rows pass one by one into a sink of Spark's own; several sinks take turns with a batch",
            fix=f"write a query for each sink, or {_TIMES}",
            query=query,
        )
        return
    entry = entries[0]
    # A single sink may stand in a list or by itself; its places are the same.
    at = ("queries", query, "to", 0)
    if flows not in entry.sink.flows:
        able = " or ".join(sorted(kind.kind for kind in registry.sinks().values() if flows in kind.flows))
        yield CODE.error(
            f"query '{query}' has a {flows} trigger, under which sink {entry.sink.kind} cannot be written",
            facts.places.key(*at),
            why="Spark hands over rows one by one then: no batch could be recognised after a crash",
            fix=f"write to {able}, or write {_TIMES}",
            query=query,
        )
    if entry.on_error is not OnError.FAIL:
        yield CODE.error(
            f"query '{query}' has a {flows} trigger, and no batch could be set aside for its sink",
            facts.places.value(*at, "on_error"),
            fix=f"write 'on_error: fail', or {_TIMES}",
            query=query,
        )
    for problem in entry.sink.unflowing():
        told, edit = facts.setting(problem, *at, "sink")
        yield CODE.error(
            f"query '{query}' has a {flows} trigger: {problem.message}",
            told,
            why=problem.why,
            fix=f"{problem.fix}; or write {_TIMES}",
            edit=edit,
            query=query,
        )


def _sources(facts: Facts, query: str, flows: str) -> Iterator[Finding]:
    """Sources that Spark reads so, with no record set aside; nothing is counted under a continuous trigger."""
    for name in facts.graph.upstream(query):
        entry, at = facts.pipeline.sources[name], ("sources", name)
        if entry.static:
            continue
        who = f"query '{query}' has a {flows} trigger, and source '{name}'"
        if flows not in entry.source.flows:
            able = " or ".join(
                sorted(kind.kind for kind in registry.sources().values() if flows in kind.flows)
            )
            yield CODE.error(
                f"{who} is read in batches",
                facts.places.key(*at),
                why=f"Spark reads {able} so, and not {entry.source.kind}",
                fix=f"read from {able}, or write {_TIMES}",
                query=query,
            )
        if entry.on_malformed is OnMalformed.DEAD_LETTER:
            yield CODE.error(
                f"{who} sets malformed records aside",
                facts.places.value(*at, "on_malformed"),
                why="they are found again by the batch that met them",
                fix=f"write 'on_malformed: drop' or 'fail', or {_TIMES}",
                query=query,
            )
        for problem in entry.source.unflowing():
            told, edit = facts.setting(problem, *at, "source")
            yield CODE.error(f"{who}: {problem.message}", told, fix=problem.fix, edit=edit, query=query)
    for name in (*facts.graph.upstream(query), *facts.graph.views(query)):
        section = "sources" if name in facts.pipeline.sources else "views"
        for expected, one in facts.pipeline.expected(name).items():
            if flows == "real_time" and one.otherwise is not Otherwise.DEAD_LETTER:
                continue
            what = "are set aside" if flows == "real_time" else "are counted"
            yield CODE.error(
                f"query '{query}' has a {flows} trigger, and rows of '{name}' that break '{expected}' {what}",
                facts.places.key(section, name, "expect", expected),
                fix=f"write it as a WHERE of a view, or {_TIMES}",
                query=query,
            )


def _limited(facts: Facts, query: str) -> bool:
    return any(facts.pipeline.sources[name].source.limited() for name in facts.graph.upstream(query))
