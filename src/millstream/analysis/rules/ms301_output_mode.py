"""A sink does not accept the query's output mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Compare the query's mode with the modes that each sink declares."""
    for query, _, entry in facts.sinks():
        mode = facts.pipeline.queries[query].output_mode
        if mode in entry.sink.modes:
            continue
        accepted = " or ".join(
            f"'output_mode: {output_mode}'" for output_mode in OutputMode if output_mode in entry.sink.modes
        )
        span = facts.places.value("queries", query, "output_mode")
        yield CODE.error(
            f"{entry.sink.kind} does not accept output mode {mode}",
            span,
            why=_REASONS[mode],
            fix=f"write {accepted}, or choose another sink",
            query=query,
        )


_REASONS = {
    OutputMode.APPEND: "in append mode the query outputs each row once, when it is final",
    OutputMode.UPDATE: "in update mode the query outputs a row again whenever it changes, and the sink "
    "would store every version",
    OutputMode.COMPLETE: "in complete mode the query outputs the whole result with each batch, and the "
    "sink must replace the earlier result",
}
