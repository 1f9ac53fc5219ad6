"""What bounds the state of an operator, and what makes an entry of it leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Growth, WindowKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millstream.analysis.dataflow import Column, TimeWindow
    from millstream.runtime.planning.bounds import Bound

Said = tuple[Growth, str]


def of_aggregate(
    keys: Sequence[Column], window: TimeWindow | None, event_time: Column | None, *, complete: bool
) -> Said:
    """GROUP BY: Spark evicts by the one key that has a watermark, and never in complete mode."""
    if not keys:
        return Growth.KEYS, "never: there is one entry in all"
    if complete and event_time is not None:
        return Growth.KEYS, "never: complete mode keeps every group"
    if event_time is None:
        return Growth.KEYS, f"never: one entry for each {_names(keys)}"
    if window is None:
        return Growth.WATERMARK, f"a group leaves when the watermark passes its {event_time.name}"
    if window.kind is WindowKind.SESSION:
        return Growth.WATERMARK, "a session leaves when the watermark passes its end"
    return Growth.WATERMARK, "a window leaves when the watermark passes its end"


def of_deduplicate(keys: Sequence[Column], *, within: bool, every: bool) -> Said:
    """Deduplication by `keys`; `every` when they are all the columns there are."""
    if within:
        return (
            Growth.WATERMARK,
            "a key leaves when the watermark passes the time of its first row plus the delay",
        )
    if timed := next((one for one in keys if one.delay is not None), None):
        return Growth.WATERMARK, f"a key leaves when the watermark passes its {timed.name}"
    if every:
        return Growth.ROWS, "never: one entry for each different row"
    return Growth.KEYS, f"never: one entry for each {_names(keys)}"


def of_join(
    left: Iterable[Column],
    right: Iterable[Column],
    keys: Iterable[tuple[Column, Column]],
    bound: Bound | None,
) -> Said:
    """A join of two streams: each side keeps its rows until no row of the other side can match them."""
    if any(one.delay is not None or other.delay is not None for one, other in keys):
        return Growth.WATERMARK, "a row of either side leaves when the watermark passes the time in its key"
    # Spark finds the end of a row by the other side's watermark and evicts by a watermark of the row's own side.
    marked = all(any(one.delay is not None for one in side) for side in (list(left), list(right)))
    timed = bound is not None and bound.left.delay is not None and bound.right.delay is not None
    ends_left = marked and timed and bound is not None and bound.limits_left
    ends_right = marked and timed and bound is not None and bound.limits_right
    if ends_left and ends_right:
        return Growth.WATERMARK, "a row leaves when the watermark has passed all rows that it may match"
    if ends_left:
        return Growth.ROWS, "never for rows of the right side; a row of the left side leaves by the watermark"
    if ends_right:
        return Growth.ROWS, "never for rows of the left side; a row of the right side leaves by the watermark"
    return Growth.ROWS, "never: every row of both sides is kept"


def of_function(timeout: str) -> Said:
    """A function with state of its own."""
    match timeout:
        case "event_time":
            return Growth.OWN, "when the function removes it, or by the timeouts it sets in event time"
        case "processing_time":
            return Growth.OWN, "when the function removes it, or by the timeouts it sets on the clock"
        case _:
            return Growth.OWN, "when the function removes it"


def _names(keys: Sequence[Column]) -> str:
    return ", ".join(one.name for one in keys)
