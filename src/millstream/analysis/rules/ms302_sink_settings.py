"""Settings of a sink, or of the place of dead letters, that cannot work, as its kind says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.pipeline.model import OnError
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Asks each sink about itself in the query's mode. Nothing is connected to."""
    for query, number, entry in facts.sinks():
        mode = facts.pipeline.queries[query].output_mode
        if mode not in entry.sink.modes:
            continue
        for problem in entry.sink.problems(mode):
            path = (
                "queries",
                query,
                "to",
                number,
                "sink",
                *(problem.field.split(".") if problem.field else ()),
            )
            span = facts.places.value(*path) if problem.field else facts.places.key(*path)
            yield CODE.of_problem(problem, span, query)
        if entry.on_error is OnError.DEAD_LETTER_ROWS and (
            not entry.sink.sifts or mode is OutputMode.COMPLETE
        ):
            where = " in complete mode" if entry.sink.sifts else ""
            yield CODE.error(
                f"{entry.sink.describe()} cannot tell which rows it refuses{where}",
                facts.places.value("queries", query, "to", number, "on_error"),
                why="rows are tried at the sink and taken back, to tell those that it refuses from the others",
                fix="write 'dead_letter', which sets the whole batch aside, or 'fail'",
                query=query,
            )
    for problem in facts.pipeline.letters.problems():
        path = ("dead_letters", "box", *((problem.field,) if problem.field else ()))
        span = facts.places.value(*path) if problem.field else facts.places.key(*path)
        yield CODE.of_problem(problem, span)
