"""Determine how the state of an operator grows, and when Spark removes an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Growth, WindowKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millstream.analysis.query.plan_model import Column, TimeWindow
    from millstream.checking.query_plan.expressions.join_time_bounds import JoinBound

Said = tuple[Growth, str]


def growth_of_aggregate(
    keys: Sequence[Column], window: TimeWindow | None, event_time: Column | None, *, complete: bool
) -> Said:
    """Return the growth of a GROUP BY. Spark evicts by the key with a watermark, and never in complete mode."""
    if not keys:
        return Growth.KEYS, "never: there is only one entry"
    if complete and event_time is not None:
        return Growth.KEYS, "never: complete mode keeps every group"
    if event_time is None:
        return Growth.KEYS, f"never: one entry for each {_joined_names(keys)}"
    if window is None:
        return Growth.WATERMARK, f"a group leaves when the watermark passes its {event_time.name}"
    if window.kind is WindowKind.SESSION:
        return Growth.WATERMARK, "a session leaves when the watermark passes its end"
    return Growth.WATERMARK, "a window leaves when the watermark passes its end"


def growth_of_deduplicate(keys: Sequence[Column], *, within: bool, every: bool) -> Said:
    """Return the growth of a deduplication by `keys`. `every` is true if they are all columns."""
    if within:
        return (
            Growth.WATERMARK,
            "a key leaves when the watermark passes the time of its first row plus the delay",
        )
    if event_time_key := next((key for key in keys if key.delay is not None), None):
        return Growth.WATERMARK, f"a key leaves when the watermark passes its {event_time_key.name}"
    if every:
        return Growth.ROWS, "never: one entry for each different row"
    return Growth.KEYS, f"never: one entry for each {_joined_names(keys)}"


def growth_of_join(
    left: Iterable[Column],
    right: Iterable[Column],
    keys: Iterable[tuple[Column, Column]],
    bound: JoinBound | None,
) -> Said:
    """Return the growth of a stream-stream join. A side stores its rows until no row of the other can match them."""
    if any(column.delay is not None or other.delay is not None for column, other in keys):
        return Growth.WATERMARK, "a row of either side leaves when the watermark passes the time in its key"
    # Spark needs the other side's watermark to know the end of a row, and a watermark of the row's side to evict it.
    has_watermarks = all(
        any(column.delay is not None for column in side) for side in (list(left), list(right))
    )
    has_bound = bound is not None and bound.left.delay is not None and bound.right.delay is not None
    ends_left = has_watermarks and has_bound and bound is not None and bound.is_left_limited
    ends_right = has_watermarks and has_bound and bound is not None and bound.is_right_limited
    if ends_left and ends_right:
        return Growth.WATERMARK, "a row leaves when the watermark has passed all rows that it may match"
    if ends_left:
        return Growth.ROWS, "never for rows of the right side; a row of the left side leaves by the watermark"
    if ends_right:
        return Growth.ROWS, "never for rows of the left side; a row of the right side leaves by the watermark"
    return Growth.ROWS, "never: every row of both sides is kept"


def growth_of_function(timeout: str) -> Said:
    """Return the growth of a stateful function."""
    match timeout:
        case "event_time":
            return Growth.OWN, "when the function removes it, or by the timeouts it sets in event time"
        case "processing_time":
            return Growth.OWN, "when the function removes it, or by the timeouts it sets on the clock"
        case _:
            return Growth.OWN, "when the function removes it"


def _joined_names(keys: Sequence[Column]) -> str:
    return ", ".join(key.name for key in keys)
