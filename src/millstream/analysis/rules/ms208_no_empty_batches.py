"""Batches without rows switched off: what a watermark lets out waits for the next row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Growth, Join, Stateful
from millstream.analysis.facts import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
SETTING = "spark.sql.streaming.noDataMicroBatches.enabled"


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Queries whose state a watermark clears; others have nothing to wait for."""
    if query.spark.get(SETTING, "true").lower() != "false":
        return
    kept = (one for one in query.of(Stateful) if not isinstance(one, Join) or one.of_streams)
    if not any(one.growth is Growth.WATERMARK for one in kept):
        return
    written = facts is not None and facts.places.has("spark", SETTING)
    yield CODE.warning(
        f"query '{query.name}' lets go of what is complete only when another row comes",
        facts.places.key("spark", SETTING) if facts and written else query.span,
        why="the batch that follows a moved watermark writes finished windows and clears the state; it has no rows",
        fix=f"remove '{SETTING}'",
        query=query.name,
    )
