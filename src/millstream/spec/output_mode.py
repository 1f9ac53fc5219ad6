"""Output modes, as Spark names them."""

from __future__ import annotations

from enum import StrEnum


class OutputMode(StrEnum):
    """The rows that a query passes to its sinks after each batch."""

    APPEND = "append"
    """Only final rows, each of them once."""
    UPDATE = "update"
    """The rows that this batch has changed; a later batch may change them again."""
    COMPLETE = "complete"
    """The whole result, after every batch."""
