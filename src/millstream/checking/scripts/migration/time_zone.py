"""Find out whether the rows of queries depend on the time zone of the session, which the script may not set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millstream.checking.scripts.interception.recording import Recording

SETTING = "spark.sql.session.timeZone"
NOTE = (
    "times without a zone, and days, are those of UTC; the old job used the zone of its machine: if that is another "
    f"one, set it under spark: {SETTING}"
)
# Formats whose files have times as text.
_TEXT_FORMATS = ("json", "csv", "xml")
# In an analysed plan: calendar functions, casts to times and days, and times in decoded messages.
_ZONED = re.compile(
    r"\b(?:to_date|to_timestamp|gettimestamp|to_unix_timestamp|unix_timestamp|from_unixtime|date_format"
    r"|date_trunc|trunc|year|quarter|month|weekofyear|weekday|dayofweek|dayofmonth|dayofyear|hour)\("
    r"| as (?:timestamp|date)\)"
    r"|\b(?:from_json|from_csv|from_xml)\(.*\bTimestampType\b"
)


def depends_on_zone(frames: Iterable[object], recording: Recording) -> bool:
    """Return whether the zone is not set, and the frames or the files of the sources have times that depend on it."""
    if SETTING in recording.conf:
        return False
    plans = (str(internals.analyzed_plan(frame).toString()) for frame in _list_known(frames))
    return _has_text_times(recording) or any(_ZONED.search(plan) for plan in plans)


def _list_known(frames: Iterable[object]) -> Iterator[DataFrame]:
    return (frame for frame in frames if isinstance(frame, DataFrame))


def _has_text_times(recording: Recording) -> bool:
    return any(
        source.format in _TEXT_FORMATS
        and any(column.dataType.simpleString() == "timestamp" for column in recording.schemas[name].fields)
        for name, source in recording.sources.items()
        if name in recording.schemas
    )
