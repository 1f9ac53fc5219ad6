"""The greatest watermark of several streams instead of the least: rows of the slower ones are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Watermark
from millstream.analysis.facts import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
SETTING = "spark.sql.streaming.multipleWatermarkPolicy"


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Queries with more than one watermark; with a single one the policy changes nothing."""
    marks = list(query.of(Watermark))
    if query.spark.get(SETTING, "min").lower() != "max" or len(marks) < 2:
        return
    written = facts is not None and facts.places.has("spark", SETTING)
    yield CODE.warning(
        f"query '{query.name}' follows the fastest of {len(marks)} watermarks",
        facts.places.key("spark", SETTING) if facts and written else query.span,
        why="older rows of the other streams are dropped as late; a checkpoint keeps the policy it began with",
        fix=f"remove '{SETTING}'; then the slowest stream sets the pace",
        query=query.name,
    )
