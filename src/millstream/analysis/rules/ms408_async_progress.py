"""A query of a script writes its progress asynchronously."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_KEY = "asyncprogresstrackingenabled"


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - a script's option
    """Check the option of `writeStream`; a spec cannot set it."""
    for sink in query.sinks:
        value = next((option_value for key, option_value in sink.options.items() if key.lower() == _KEY), "")
        if value.lower() == "true":
            yield CODE.warning(
                f"with asyncProgressTrackingEnabled, query '{query.name}' does not store the offsets of a batch "
                f"before the batch runs",
                sink.span or query.span,
                why="after a crash a repeated batch may contain other rows than before, so rows that were already "
                "written are written again",
                fix="remove this option, unless duplicate rows do no harm",
                query=query.name,
            )
