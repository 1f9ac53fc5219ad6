"""A function with state whose timers wait for a watermark that never comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import StatefulFunction
from millstream.analysis.facts import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
INSTEAD_OF = ("Event-time timeout not supported without watermark",)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Timers by event time fire when the watermark passes them, so a source must have one."""
    for one in query.of(StatefulFunction):
        if one.timeout != "event_time" or any(
            column.delay is not None for side in one.inputs for column in side.columns
        ):
            continue
        yield CODE.error(
            f"{eventtime.who(query, one)} waits for event time, and no source behind it has a watermark",
            eventtime.place(query, one),
            why="a timer by event time fires when the watermark passes it, and Spark refuses to run without one",
            fix="set a watermark on the source, or go by processing time",
            query=query.name,
        )
