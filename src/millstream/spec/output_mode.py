"""Output modes, as Spark names them."""

from __future__ import annotations

from enum import StrEnum


class OutputMode(StrEnum):
    """The rows that a query passes to its sinks after each batch."""

    APPEND = "append"
    """Rows that are final; each is passed on once."""
    UPDATE = "update"
    """Rows that changed in this batch; a key may come again."""
    COMPLETE = "complete"
    """The whole result, after every batch."""
