"""Watermarks: how late a row may arrive."""

from __future__ import annotations

from millstream.spec.base import Spec
from millstream.spec.duration import Duration


class Watermark(Spec):
    """Spark's watermark: the newest event time so far, minus the delay."""

    event_time: str
    """The timestamp column that contains a row's event time."""
    delay_threshold: Duration
    """How much older than the newest event time a row may be without being late."""
