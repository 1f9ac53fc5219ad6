"""Alerts of a spec: `watermark_lag > 15 minutes`, `lag growing for 5 minutes`, `no progress for 3 triggers`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from millstream.spec.duration import Duration


class Watch(StrEnum):
    """What an alert looks at."""

    WATERMARK_LAG = "watermark_lag"
    """Seconds by which the watermark is behind the clock."""
    FRESHNESS = "freshness"
    """The age of the newest event, in seconds."""
    LAG = "lag"
    """Records of Kafka that a query has not yet read."""
    LAG_GROWING = "lag growing"
    """For how many seconds that number has to grow."""
    SILENCE = "no progress"
    """Triggers without a sign of life."""
    DEAD_LETTERS = "dead_letters"
    """Records set aside since the start of the run."""
    BATCH_TIME = "batch_time"
    """The duration of the last batch, in seconds."""


TIMES = (Watch.WATERMARK_LAG, Watch.FRESHNESS, Watch.BATCH_TIME)
_COMPARED = re.compile(r"(\w+)\s*>\s*(.+)")
_GROWING = re.compile(r"lag\s+growing\s+for\s+(.+)")
_SILENT = re.compile(r"no\s+progress\s+for\s+(\d+)\s+triggers?")
HOW = "write 'watermark_lag > 15 minutes', 'lag growing for 5 minutes' or 'no progress for 3 triggers'"


@dataclass(frozen=True)
class Condition:
    """An alert as a value: it fires where `watch` is above `limit` (seconds, records or triggers)."""

    text: str
    watch: Watch
    limit: float


def condition(text: str) -> Condition:
    """The condition that a text says. Raises `ValueError` with a sentence for any other text."""
    said = " ".join(text.split())
    if found := _SILENT.fullmatch(said):
        return Condition(said, Watch.SILENCE, float(found[1]))
    if found := _GROWING.fullmatch(said):
        return Condition(said, Watch.LAG_GROWING, _seconds(said, found[1]))
    if found := _COMPARED.fullmatch(said):
        compared = {str(one): one for one in Watch if " " not in one}
        if found[1] not in compared:
            raise ValueError(f"'{found[1]}' cannot be compared in an alert; there are {', '.join(compared)}")
        watch = compared[found[1]]
        if watch in TIMES:
            return Condition(said, watch, _seconds(said, found[2]))
        if not re.fullmatch(r"\d[\d_,]*", found[2]):
            raise ValueError(f"'{found[2]}' in alert '{said}' is not a number of records")
        return Condition(said, watch, float(re.sub("[_,]", "", found[2])))
    raise ValueError(f"'{said}' is not an alert; {HOW}")


def _seconds(alert: str, length: str) -> float:
    try:
        return Duration(length).seconds
    except ValueError as wrong:
        raise ValueError(f"in alert '{alert}': {wrong}") from wrong
