"""What happens to the rows of a source when a batch is replayed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Replayability(StrEnum):
    """Whether a batch can be read again, from the safest to the worst."""

    EXACT = "exact"
    """The same rows are read, or the query stops."""
    CONDITIONAL = "conditional"
    """The same rows are read under a condition that is not monitored."""
    NONE = "none"
    """Rows may be missing without an error."""


@dataclass(frozen=True)
class ReplayBehaviour:
    """What happens to a source's rows when their batch is replayed.

    `text` continues the source's name: `can be read again from …`. For a condition it states the requirement: `no
    file of it may be changed in place`. `field` is the setting that decides, if there is one.
    """

    how: Replayability
    text: str
    field: str | None = None
