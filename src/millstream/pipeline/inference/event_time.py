"""Find the column with the event time, and how far records arrive out of order."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from millstream.pipeline.inference.column_types import DATE, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Numbers are taken for times only between these years, and only in columns with a name like a time's.
_EARLIEST = datetime(2001, 1, 1, tzinfo=UTC).timestamp()
_LATEST = datetime(2100, 1, 1, tzinfo=UTC).timestamp()
_LIKE_A_TIME = re.compile(
    r"time|stamp|date|epoch|(^|_)(ts|at|on|when|ms|us|millis|micros|sec|secs|seconds)($|_)|[a-z]At$",
    re.IGNORECASE,
)
_BEST = ("event_time", "eventtime", "event_timestamp", "event_ts", "occurred_at", "timestamp", "ts", "time")
# Times that are about something else than the event.
_ABOUT_ANOTHER = re.compile(r"expir|birth|due|until|valid|deliver|schedule|end", re.IGNORECASE)
_DELAYS = (10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400)
_DAY = 86400
# The part of the records that must have the time. The others become dead letters.
_ENOUGH = 0.95


class TimeUnit(StrEnum):
    """How a column contains a time."""

    TIMESTAMP = "timestamp"
    SECONDS = "seconds"
    MILLIS = "milliseconds"
    MICROS = "microseconds"


_PER_SECOND = {TimeUnit.SECONDS: 1, TimeUnit.MILLIS: 1_000, TimeUnit.MICROS: 1_000_000}


@dataclass(frozen=True)
class TimeColumn:
    """A column with a time in every record, and what was seen of its order."""

    name: str
    unit: TimeUnit
    first: datetime
    last: datetime
    disorder: timedelta
    """The longest time by which a record was behind a newer one that came before it."""
    late: int
    """Number of records that were behind a newer one."""
    missing: int = 0
    """Number of records without it."""
    has_zone: bool = True
    """False for texts without a time zone."""

    @property
    def delay(self) -> str:
        """The delay of a watermark: twice the disorder, rounded up, and at least ten seconds."""
        doubled = self.disorder.total_seconds() * 2
        seconds = next((delay for delay in _DELAYS if delay >= doubled), None)
        return format_seconds(seconds if seconds is not None else math.ceil(doubled / _DAY) * _DAY)


def find_event_time(records: Sequence[Mapping[str, Any]], partitions: Sequence[int]) -> TimeColumn | None:
    """Return the column that is most likely the event time, or None. Nearly all records have a value in it.

    `partitions` has the partition of each record; order counts within a partition only.
    """
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = [column for name in names if (column := _read_column(name, records, partitions)) is not None]
    return min(columns, key=_rank, default=None)


def read_time(value: Any, unit: TimeUnit) -> datetime | None:
    """Return the time of a value, in UTC if it has no zone; None if it is none."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if unit is not TimeUnit.TIMESTAMP:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        seconds = value / _PER_SECOND[unit] if is_number else 0
        return datetime.fromtimestamp(seconds, UTC) if _EARLIEST <= seconds < _LATEST else None
    if not isinstance(value, str) or not (TIMESTAMP.fullmatch(value) or DATE.fullmatch(value)):
        return None
    try:
        time = datetime.fromisoformat(re.sub(r"([.]\d{6})\d+", r"\1", value))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def format_seconds(seconds: int) -> str:
    """Return a duration as a spec has it: `30 seconds`, `1 hour`, `2 days`."""
    for size, unit in ((_DAY, "day"), (3600, "hour"), (60, "minute")):
        if seconds % size == 0 and seconds:
            return f"{seconds // size} {unit}{'s' * (seconds != size)}"
    return f"{seconds} second{'s' * (seconds != 1)}"


def _read_column(
    name: str, records: Sequence[Mapping[str, Any]], partitions: Sequence[int]
) -> TimeColumn | None:
    values = [record.get(name) for record in records]
    known = [value for value in values if value is not None]
    example = known[0] if known else None
    is_number = isinstance(example, int)
    if example is None or (is_number and not _LIKE_A_TIME.search(name)):
        return None
    # A date orders days, and no windows of minutes.
    if all(isinstance(value, str) and DATE.fullmatch(value) for value in known):
        return None
    units = list(_PER_SECOND) if is_number else [TimeUnit.TIMESTAMP]
    for unit in units:
        read = [read_time(value, unit) for value in values]
        timed = [(time, partition) for time, partition in zip(read, partitions, strict=True) if time]
        if len(timed) < len(values) * _ENOUGH:
            continue
        times = [time for time, _ in timed]
        disorder, late = _measure_disorder(timed)
        has_zone = not isinstance(example, str) or bool(re.search(r"(Z|[+-]\d\d:\d\d)$", example))
        return TimeColumn(
            name, unit, min(times), max(times), disorder, late, len(values) - len(times), has_zone
        )
    return None


def _measure_disorder(timed: Sequence[tuple[datetime, int]]) -> tuple[timedelta, int]:
    newest: dict[int, datetime] = {}
    disorder, late = timedelta(0), 0
    for time, partition in timed:
        latest = newest.setdefault(partition, time)
        late += time < latest
        disorder = max(disorder, latest - time)
        newest[partition] = max(latest, time)
    return disorder, late


def _rank(column: TimeColumn) -> tuple[int, int, timedelta]:
    """Order columns by how likely they are the event time: by name, then by how well they follow the arrival."""
    name = column.name.lower()
    known = _BEST.index(name) if name in _BEST else len(_BEST)
    doubt = 2 if _ABOUT_ANOTHER.search(name) else 0 if _LIKE_A_TIME.search(column.name) else 1
    return doubt, known, column.disorder
