"""A continuous or real-time trigger does not fit the query, or the query has the deprecated trigger `once`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.analysis.text_edits import replace_value
from millstream.connectors import registry
from millstream.pipeline.model import OnError, OnMalformed
from millstream.spec.expectation import Otherwise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding, Span

CODE = Code.of(__name__)

_MICRO_BATCH_FIX = "a micro-batch trigger, such as '1 second'"


def check(facts: Facts) -> Iterator[Finding]:
    """Report settings that need micro-batches: a continuous or real-time trigger writes rows one by one."""
    for query, entry in facts.pipeline.queries.items():
        trigger = facts.pipeline.trigger(query)
        path = ("queries", query, "trigger") if entry.trigger else ("defaults", "trigger")
        span = facts.places.value(*path)
        if trigger.flows:
            findings = [
                *_check_sinks(facts, query, trigger.flows),
                *_check_sources(facts, query, trigger.flows),
            ]
            yield from findings or [_build_note(query, trigger.flows, span)]
        elif trigger.once:
            yield CODE.warning(
                f"query '{query}' has the trigger 'once'",
                span,
                why="this trigger reads everything in one batch and ignores the batch limits of the sources, and "
                "Spark has deprecated it",
                fix="write 'trigger: available_now'",
                # If a source limits its batches, `available_now` reads the same rows in several batches.
                edit=replace_value(
                    facts.places, "available_now", *path, safe=not _has_batch_limit(facts, query)
                ),
                query=query,
            )


def _build_note(query: str, flows: str, span: Span | None) -> Finding:
    """Build the note about the missing guarantees of such a query."""
    return CODE.note(
        f"query '{query}' has a {flows} trigger: rows are written one by one, each at least once",
        span,
        why="after a stop or a crash, the rows since the last checkpoint are written again; dead letters are not "
        "possible, and each partition occupies one task for the whole run",
        query=query,
    )


def _check_sinks(facts: Facts, query: str, flows: str) -> Iterator[Finding]:
    """Report sinks that Spark cannot write row by row."""
    entries = facts.pipeline.queries[query].to
    if len(entries) > 1:
        yield CODE.error(
            f"query '{query}' has a {flows} trigger and {len(entries)} sinks",
            facts.places.value("queries", query, "to"),
            why="Spark writes rows one by one to a single built-in sink; several sinks need micro-batches",
            fix=f"write a query for each sink, or {_MICRO_BATCH_FIX}",
            query=query,
        )
        return
    entry = entries[0]
    # A single sink may be an entry of a list or the value itself; both have the same path.
    path = ("queries", query, "to", 0)
    if flows not in entry.sink.flows:
        supported = " or ".join(
            sorted(kind.kind for kind in registry.sinks().values() if flows in kind.flows)
        )
        yield CODE.error(
            f"query '{query}' has a {flows} trigger, which sink {entry.sink.kind} does not support",
            facts.places.key(*path),
            why="with this trigger Spark writes rows one by one, so a batch that is repeated after a crash cannot "
            "be recognised",
            fix=f"write to {supported}, or write {_MICRO_BATCH_FIX}",
            query=query,
        )
    if entry.on_error is not OnError.FAIL:
        yield CODE.error(
            f"query '{query}' has a {flows} trigger, with which batches cannot be spooled",
            facts.places.value(*path, "on_error"),
            fix=f"write 'on_error: fail', or {_MICRO_BATCH_FIX}",
            query=query,
        )
    for problem in entry.sink.record_mode_problems():
        reported, edit = facts.setting(problem, *path, "sink")
        yield CODE.error(
            f"query '{query}' has a {flows} trigger: {problem.message}",
            reported,
            why=problem.why,
            fix=f"{problem.fix}; or write {_MICRO_BATCH_FIX}",
            edit=edit,
            query=query,
        )


def _check_sources(facts: Facts, query: str, flows: str) -> Iterator[Finding]:
    """Report sources that Spark cannot read with this trigger, and dead letters or expectations that need batches."""
    for name in facts.graph.sources_of(query):
        entry, path = facts.pipeline.sources[name], ("sources", name)
        if entry.static:
            continue
        subject = f"query '{query}' has a {flows} trigger, and source '{name}'"
        if flows not in entry.source.flows:
            supported = " or ".join(
                sorted(kind.kind for kind in registry.sources().values() if flows in kind.flows)
            )
            yield CODE.error(
                f"{subject} is read in micro-batches",
                facts.places.key(*path),
                why=f"with this trigger Spark reads {supported}, not {entry.source.kind}",
                fix=f"read from {supported}, or write {_MICRO_BATCH_FIX}",
                query=query,
            )
        if entry.on_malformed is OnMalformed.DEAD_LETTER:
            yield CODE.error(
                f"{subject} writes malformed records as dead letters",
                facts.places.value(*path, "on_malformed"),
                why="a dead letter is identified by its batch, but with this trigger there are no batches",
                fix=f"write 'on_malformed: drop' or 'fail', or {_MICRO_BATCH_FIX}",
                query=query,
            )
        for problem in entry.source.record_mode_problems():
            reported, edit = facts.setting(problem, *path, "source")
            yield CODE.error(
                f"{subject}: {problem.message}", reported, fix=problem.fix, edit=edit, query=query
            )
    for name in (*facts.graph.sources_of(query), *facts.graph.views(query)):
        section = "sources" if name in facts.pipeline.sources else "views"
        for expectation_name, expectation in facts.pipeline.expected(name).items():
            if flows == "real_time" and expectation.otherwise is not Otherwise.DEAD_LETTER:
                continue
            action = "are written as dead letters" if flows == "real_time" else "are counted"
            yield CODE.error(
                f"query '{query}' has a {flows} trigger, and rows of '{name}' that break '{expectation_name}' "
                f"{action}",
                facts.places.key(section, name, "expect", expectation_name),
                fix=f"write it as a WHERE condition in a view, or {_MICRO_BATCH_FIX}",
                query=query,
            )


def _has_batch_limit(facts: Facts, query: str) -> bool:
    return any(
        facts.pipeline.sources[name].source.has_batch_limit() for name in facts.graph.sources_of(query)
    )
