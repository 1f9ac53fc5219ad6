"""Delivery guarantees: how often an input row may take effect in a sink."""

from __future__ import annotations

from enum import StrEnum


class Guarantee(StrEnum):
    """A delivery guarantee, strongest first."""

    EXACTLY_ONCE = "exactly-once"
    """Rows and the batch id are committed together; a replayed batch is skipped."""
    EFFECTIVELY_ONCE = "effectively-once"
    """A replayed batch writes the same keys again. The table ends up correct, but a reader may see a row change
    twice."""
    AT_LEAST_ONCE = "at-least-once"
    """A crash may repeat rows."""
    AT_MOST_ONCE = "at-most-once"
    """A crash may lose rows."""
