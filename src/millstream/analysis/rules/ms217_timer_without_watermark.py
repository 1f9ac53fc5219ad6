"""A stateful function uses event-time timers, although its input has no watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import StatefulFunction
from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
INSTEAD_OF = ("Event-time timeout not supported without watermark",)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Report event-time timers without a watermark: they fire when the watermark passes them."""
    for function in query.of(StatefulFunction):
        if function.timeout != "event_time" or any(
            column.delay is not None for side in function.inputs for column in side.columns
        ):
            continue
        yield CODE.error(
            f"{event_time.owner_label(query, function)} uses event-time timers, but none of its "
            "sources has a watermark",
            event_time.find_span(query, function),
            why="an event-time timer fires when the watermark passes it, and Spark refuses to run without a "
            "watermark",
            fix="declare a watermark on the source, or use processing time",
            query=query.name,
        )
