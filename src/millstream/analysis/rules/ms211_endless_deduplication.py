"""Deduplication that remembers every key for ever, though there is a watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.amend import replaced
from millstream.analysis.dataflow import Deduplicate
from millstream.analysis.facts import Code
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """DISTINCT and dropDuplicates whose keys hold no event time; without any watermark MS201 says so."""
    for one in query.of(Deduplicate):
        # Spark itself refuses a DISTINCT of SQL in append mode.
        refused = one.node == "Distinct" and query.output_mode is OutputMode.APPEND
        if refused or one.within_watermark or any(key.delay is not None for key in one.keys):
            continue
        free = [key.name for key in one.keys if not eventtime.bounded(one, key)]
        if (
            not free
            or not eventtime.watermarks(one)
            or eventtime.lost(one)
            or eventtime.kept_by_sinks(query, one)
        ):
            continue
        yield CODE.warning(
            f"{eventtime.who(query, one)} remembers every '{free[0]}' for ever to drop its repetitions",
            eventtime.place(query, one),
            label="drops repetitions here",
            why="a watermark removes a key only when event time is among the keys, or within the watermark",
            fix="use dropDuplicatesWithinWatermark, or 'drop_duplicates_within_watermark' of the source",
            edit=replaced(facts, one.span, "dropDuplicates", "dropDuplicatesWithinWatermark", safe=False),
            query=query.name,
        )
