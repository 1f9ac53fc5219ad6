"""Rules about state on plans built by hand: cases that their pages do not show."""

from __future__ import annotations

import pytest

from millstream.analysis.query.plan_model import Column, Deduplicate, PlannedQuery, Read, StatefulFunction
from millstream.analysis.rules import ms218_kept_state, ms407_state_provider
from millstream.diagnostics.finding import Span
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

USER = Column("user", "string", origins=frozenset({("orders", "user")}))
ORDERS = Read(2, "StreamingRelation", "", columns=(USER,), is_streaming=True, source="orders")


@pytest.mark.parametrize(("mode", "codes"), [("append", []), ("update", []), ("complete", ["MS218"])])
def test_a_deduplication_without_a_watermark_keeps_its_keys_in_complete_mode(
    mode: str, codes: list[str]
) -> None:
    root = Deduplicate(1, "Deduplicate", "", (ORDERS,), (USER,), is_streaming=True, keys=(USER,))
    query = PlannedQuery("orders", root, OutputMode(mode), Trigger())

    assert [finding.code for finding in ms218_kept_state.judge(query, None)] == codes


def test_state_of_a_script_is_told_at_the_call_and_else_at_the_query() -> None:
    call, start = Span.point("job.py", 7), Span.point("job.py", 9)
    for span in (call, None):
        root = StatefulFunction(
            1, "TransformWithStateInPySpark", "", (ORDERS,), (USER,), is_streaming=True, span=span
        )
        query = PlannedQuery("orders", root, OutputMode.UPDATE, Trigger(), span=start)

        (finding,) = ms407_state_provider.judge(query, None)

        assert finding.span == (span or start)
