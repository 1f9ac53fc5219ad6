"""A query of a script that writes its progress aside, after the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_KEY = "asyncprogresstrackingenabled"


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - a script's option
    """The option of `writeStream`; a spec has no place for it."""
    for sink in query.sinks:
        said = next((value for key, value in sink.options.items() if key.lower() == _KEY), "")
        if said.lower() == "true":
            yield CODE.warning(
                f"query '{query.name}' does not write which offsets a batch has before it runs",
                sink.span or query.span,
                why="with asyncProgressTrackingEnabled a batch that comes again may hold other rows than before: "
                "what was written stays, and is written again",
                fix="remove the option, unless rows that come twice do no harm",
                query=query.name,
            )
