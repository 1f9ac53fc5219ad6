"""Find the session windows that are still open: their start, the time of their row, does not tell it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Aggregate, WindowKind
from millstream.backfill.event_time import is_window_end, list_time_columns
from millstream.connectors.api.values.event_time_range import EventTimeRange
from millstream.diagnostics.failure import InvalidInput
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.backfill.options import BackfillOptions
    from millstream.backfill.targets import BackfillTarget
    from millstream.pipeline.model import Pipeline


def has_sessions(planned: PlannedQuery) -> bool:
    """Return whether the query has session windows."""
    return any(
        isinstance(operator, Aggregate)
        and operator.is_streaming
        and operator.window is not None
        and operator.window.kind is WindowKind.SESSION
        for operator in planned.walk()
    )


def find_window_ends(pipeline: Pipeline, planned: PlannedQuery) -> list[tuple[str, ...]]:
    """Return the columns, or columns and fields, of the result that contain the end of a window."""
    ends: list[tuple[str, ...]] = []
    for column in list_time_columns(pipeline, planned):
        if column.type.lower().startswith("struct"):
            ends.append((column.name, "end"))
        elif is_window_end(planned, column):
            ends.append((column.name,))
    return ends


def closed_windows(ends: Sequence[tuple[str, ...]], watermark: datetime) -> str:
    """Return the condition, in Spark SQL, for rows whose windows are closed at the watermark.

    Spark closes a window once the watermark reaches its end.
    """
    limit = watermark + timedelta(microseconds=1)
    return " AND ".join(EventTimeRange(path, None, limit).sql() for path in ends)


def require_closed_sessions(
    pipeline: Pipeline, planned: PlannedQuery, targets: Sequence[BackfillTarget], options: BackfillOptions
) -> None:
    """Raise `InvalidInput` if a backfill would write or delete sessions that are still open."""
    own_targets = [target for target in targets if not target.side]
    if options.compare or options.past is not None or not own_targets or not has_sessions(planned):
        return
    if any(not target.row_key for target in own_targets) and not find_window_ends(pipeline, planned):
        raise InvalidInput(
            f"query '{planned.name}' has session windows, and its result does not contain their end, so the backfill "
            f"would also write sessions that are still open, and the query would write them again",
            "write to another target with --into",
        )
    if options.replace and planned.output_mode is not OutputMode.APPEND:
        raise InvalidInput(
            f"query '{planned.name}' has session windows in output mode {planned.output_mode.value}, and --replace "
            f"would delete sessions that are still open",
            "leave out --replace; missing and different rows are written without this option",
        )
