"""How late a row may be."""

from __future__ import annotations

from millstream.spec.base import Spec
from millstream.spec.duration import Duration


class Watermark(Spec):
    """Spark's watermark: the newest event time seen, less the delay."""

    event_time: str
    """The timestamp column that says when a row happened."""
    delay_threshold: Duration
    """How much later than the newest row another may be and still count."""
