"""How much a rule's findings matter, as a team decides for its pipeline."""

from __future__ import annotations

from enum import StrEnum


class RuleSeverity(StrEnum):
    """What becomes of the findings of a rule."""

    IGNORE = "ignore"
    """They are not shown."""
    INFO = "info"
    """They are good to know."""
    WARNING = "warning"
    """They are shown, and the pipeline starts."""
    ERROR = "error"
    """The pipeline does not start."""
