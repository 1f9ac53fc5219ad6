"""A setting switches off batches without rows, so that finished windows wait for the next row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Growth, Join, StatefulOperator
from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
SETTING = "spark.sql.streaming.noDataMicroBatches.enabled"


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Check queries whose state a watermark clears; other queries have nothing to wait for."""
    if query.spark.get(SETTING, "true").lower() != "false":
        return
    stateful = (
        operator
        for operator in query.of(StatefulOperator)
        if not isinstance(operator, Join) or operator.is_stream_stream
    )
    if not any(operator.growth is Growth.WATERMARK for operator in stateful):
        return
    is_in_spec = facts is not None and facts.places.has("spark", SETTING)
    yield CODE.warning(
        f"query '{query.name}' writes finished windows and removes their state only when another row arrives",
        facts.places.key("spark", SETTING) if facts and is_in_spec else query.span,
        why="otherwise Spark does this at once, in a batch without rows after each batch that advances the "
        "watermark; this setting switches such batches off",
        fix=f"remove '{SETTING}'",
        query=query.name,
    )
