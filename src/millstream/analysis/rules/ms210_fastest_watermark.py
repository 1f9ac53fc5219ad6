"""A setting uses the fastest of several watermarks, so that rows of the slower streams are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import WatermarkOperator
from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
SETTING = "spark.sql.streaming.multipleWatermarkPolicy"


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Check queries with more than one watermark; the policy has no effect on a single one."""
    watermarks = list(query.of(WatermarkOperator))
    if query.spark.get(SETTING, "min").lower() != "max" or len(watermarks) < 2:
        return
    is_in_spec = facts is not None and facts.places.has("spark", SETTING)
    yield CODE.warning(
        f"query '{query.name}' uses the fastest of its {len(watermarks)} watermarks",
        facts.places.key("spark", SETTING) if facts and is_in_spec else query.span,
        why="rows of the slower streams are dropped as late; the checkpoint stores this setting, so a later "
        "change has no effect",
        fix=f"remove '{SETTING}'; the query then uses the slowest watermark",
        query=query.name,
    )
