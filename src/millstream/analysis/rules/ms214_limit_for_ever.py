"""A LIMIT on a stream counts all rows since the query first started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Limit
from millstream.analysis.rule_context import Code
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Check append mode only: complete mode limits the whole result each time, and Spark refuses update mode."""
    if query.output_mode is not OutputMode.APPEND:
        return
    reported_numbers: set[int] = set()
    for limit in query.of(Limit):
        # Spark plans one LIMIT twice: in each task, and then over all tasks.
        if limit.number in reported_numbers:
            continue
        reported_numbers |= {operator.number for operator in limit.walk() if isinstance(operator, Limit)}
        rows = f"first {limit.rows} rows" if limit.rows is not None else "first rows"
        yield CODE.warning(
            f"{event_time.owner_label(query, limit)} returns the {rows} since the query first started, and then "
            f"none",
            event_time.find_span(query, limit),
            label="limits here",
            why="the limit counts all rows since the first start, across batches and restarts",
            fix="limit the batch size at the source, for example with 'max_offsets_per_trigger', or remove the LIMIT",
            query=query.name,
        )
