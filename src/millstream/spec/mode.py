"""Output modes, as Spark names them."""

from __future__ import annotations

from enum import StrEnum


class OutputMode(StrEnum):
    """What a query hands to its sinks after each batch."""

    APPEND = "append"
    """Rows that are final; each is handed over once."""
    UPDATE = "update"
    """Rows that changed in this batch; a key may come again."""
    COMPLETE = "complete"
    """The whole result, every time."""
