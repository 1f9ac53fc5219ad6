"""Plans built by hand, for tests of the analysis."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from millstream.analysis.query.plan_model import (
    Aggregate,
    Column,
    Expression,
    Growth,
    Operator,
    PlannedQuery,
    Read,
    TimeWindow,
    WatermarkOperator,
    WindowKind,
)
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

MINUTE = timedelta(minutes=1)
TS, ID = Column("ts", "timestamp", delay=5 * MINUTE), Column("id", "string")
SPAN = Column("window", "struct<start:timestamp,end:timestamp>", delay=5 * MINUTE)
COUNT = Expression("count", "count(1)")
TUMBLING = TimeWindow(WindowKind.TUMBLING, "ts", 10 * MINUTE, 10 * MINUTE)


def read(name: str = "orders", *, streaming: bool = True) -> Read:
    """A source with `id` and a `ts` that has no watermark."""
    columns = (ID, Column("ts", "timestamp"))
    return Read(
        9, "StreamingRelation", "", columns=columns, is_streaming=streaming, source=name, format="kafka"
    )


def marked(name: str = "orders", delay: timedelta = 5 * MINUTE) -> WatermarkOperator:
    """A source whose `ts` has a watermark."""
    columns = (ID, Column("ts", "timestamp", delay=delay))
    below = (read(name),)
    return WatermarkOperator(
        8, "EventTimeWatermark", "", below, columns, is_streaming=True, event_time="ts", delay=delay
    )


def windowed(window: TimeWindow = TUMBLING, below: Operator | None = None, **more: Any) -> Aggregate:
    """A count by a window over `ts`."""
    value: dict[str, Any] = {"keys": (SPAN,), "functions": (COUNT,), "event_time_key": SPAN} | more
    return Aggregate(
        3, "Aggregate", "", (below or marked(),), (SPAN,), is_streaming=True, growth=Growth.WATERMARK,
        leaves="a window leaves when the watermark passes its end", window=window, **value,
    )  # fmt: skip


def planned(root: Operator, mode: str = "append", trigger: str = "default", **more: Any) -> PlannedQuery:
    """A query of that plan."""
    return PlannedQuery("q", root, OutputMode(mode), Trigger.model_validate(trigger), **more)
