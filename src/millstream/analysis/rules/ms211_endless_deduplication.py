"""A deduplication keeps every key forever, although there is a watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Deduplicate
from millstream.analysis.rule_context import Code
from millstream.analysis.sql_edits import replace_in_marked_text
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Check DISTINCT and dropDuplicates without event time among the keys; MS201 reports a missing watermark."""
    for operator in query.of(Deduplicate):
        # Spark itself refuses a DISTINCT of SQL in append mode.
        is_refused = operator.node == "Distinct" and query.output_mode is OutputMode.APPEND
        if is_refused or operator.is_within_watermark or any(key.delay is not None for key in operator.keys):
            continue
        unbounded_keys = [key.name for key in operator.keys if not event_time.is_bounded(operator, key)]
        if (
            not unbounded_keys
            or not event_time.list_watermarks(operator)
            or event_time.find_lost_watermark(operator)
            or event_time.is_keyed_by_sinks(query, operator)
        ):
            continue
        yield CODE.warning(
            f"{event_time.owner_label(query, operator)} keeps every '{unbounded_keys[0]}' in its state forever, "
            f"to recognise duplicates",
            event_time.find_span(query, operator),
            label="deduplicates here",
            why="a watermark removes a key from the state only if event time is among the key columns, or with "
            "dropDuplicatesWithinWatermark",
            fix="use dropDuplicatesWithinWatermark in the view, or set 'drop_duplicates_within_watermark' on the "
            "source",
            edit=replace_in_marked_text(
                facts, operator.span, "dropDuplicates", "dropDuplicatesWithinWatermark", safe=False
            ),
            query=query.name,
        )
