"""Settings of a sink or the dead-letter store contradict each other or do not work in the output mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.pipeline.model import OnError
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Ask each sink to validate its settings in the query's mode, without connecting to any system."""
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
            not entry.sink.can_roll_back or mode is OutputMode.COMPLETE
        ):
            condition = " in complete mode" if entry.sink.can_roll_back else ""
            yield CODE.error(
                f"{entry.sink.describe()} cannot report which rows it refuses{condition}",
                facts.places.value("queries", query, "to", number, "on_error"),
                why="rows are written and rolled back one by one to find those that the sink refuses",
                fix="write 'dead_letter', which spools the whole batch, or 'fail'",
                query=query,
            )
    for problem in facts.pipeline.letters.problems():
        path = ("dead_letters", "box", *((problem.field,) if problem.field else ()))
        span = facts.places.value(*path) if problem.field else facts.places.key(*path)
        yield CODE.of_problem(problem, span)
