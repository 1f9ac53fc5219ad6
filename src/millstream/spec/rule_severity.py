"""Severity of a rule's findings, as configured for a pipeline."""

from __future__ import annotations

from enum import StrEnum


class RuleSeverity(StrEnum):
    """Severity that a pipeline assigns to the findings of a rule."""

    IGNORE = "ignore"
    """The findings are not shown."""
    INFO = "info"
    """The findings are shown as information."""
    WARNING = "warning"
    """The findings are shown, and the pipeline starts."""
    ERROR = "error"
    """The pipeline does not start."""
