"""Alerts of a spec: `watermark_lag > 15 minutes`, `lag growing for 5 minutes`, `no progress for 3 triggers`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from millstream.spec.duration import Duration


class AlertMeasure(StrEnum):
    """The measure that an alert compares."""

    WATERMARK_LAG = "watermark_lag"
    """Seconds by which the watermark is behind the clock."""
    FRESHNESS = "freshness"
    """The age of the newest event, in seconds."""
    LAG = "lag"
    """Records of Kafka that a query has not yet read."""
    LAG_GROWING = "lag growing"
    """Seconds for which the number of unread records has been growing."""
    SILENCE = "no progress"
    """Triggers without any progress."""
    DEAD_LETTERS = "dead_letters"
    """Dead letters since the start of the run."""
    BATCH_TIME = "batch_time"
    """The duration of the last batch, in seconds."""


TIMES = (AlertMeasure.WATERMARK_LAG, AlertMeasure.FRESHNESS, AlertMeasure.BATCH_TIME)
_COMPARED = re.compile(r"(\w+)\s*>\s*(.+)")
_GROWING = re.compile(r"lag\s+growing\s+for\s+(.+)")
_SILENT = re.compile(r"no\s+progress\s+for\s+(\d+)\s+triggers?")
HOW = "write 'watermark_lag > 15 minutes', 'lag growing for 5 minutes' or 'no progress for 3 triggers'"


@dataclass(frozen=True)
class Condition:
    """A parsed alert: it fires while `watch` is above `limit` (seconds, records or triggers)."""

    text: str
    watch: AlertMeasure
    limit: float


def parse_condition(text: str) -> Condition:
    """Parse an alert's condition. Raises `ValueError` with a readable message if the text is not one."""
    alert = " ".join(text.split())
    if match := _SILENT.fullmatch(alert):
        return Condition(alert, AlertMeasure.SILENCE, float(match[1]))
    if match := _GROWING.fullmatch(alert):
        return Condition(alert, AlertMeasure.LAG_GROWING, _seconds(alert, match[1]))
    if match := _COMPARED.fullmatch(alert):
        measures = {str(measure): measure for measure in AlertMeasure if " " not in measure}
        if match[1] not in measures:
            raise ValueError(f"'{match[1]}' cannot be compared in an alert; use one of {', '.join(measures)}")
        watch = measures[match[1]]
        if watch in TIMES:
            return Condition(alert, watch, _seconds(alert, match[2]))
        if not re.fullmatch(r"\d[\d_,]*", match[2]):
            raise ValueError(f"'{match[2]}' in alert '{alert}' is not a number of records")
        return Condition(alert, watch, float(re.sub("[_,]", "", match[2])))
    raise ValueError(f"'{alert}' is not an alert; {HOW}")


def _seconds(alert: str, length: str) -> float:
    try:
        return Duration(length).seconds
    except ValueError as error:
        raise ValueError(f"in alert '{alert}': {error}") from error
