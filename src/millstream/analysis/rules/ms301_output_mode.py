"""A sink that does not take the query's output mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """The modes that each kind declares."""
    for query, _, entry in facts.sinks():
        mode = facts.pipeline.queries[query].output_mode
        if mode in entry.sink.modes:
            continue
        taken = " or ".join(str(one) for one in OutputMode if one in entry.sink.modes)
        span = facts.places.value("queries", query, "output_mode")
        yield CODE.error(
            f"{entry.sink.kind} does not take output mode {mode}",
            span,
            why=_WHY[mode],
            fix=f"write 'output_mode: {taken}', or choose another sink",
            query=query,
        )


_WHY = {
    OutputMode.APPEND: "append hands over each final row once",
    OutputMode.UPDATE: "update hands over a row again whenever it changes; the sink would keep every version",
    OutputMode.COMPLETE: "complete hands over the whole result each time; the sink must replace it",
}
