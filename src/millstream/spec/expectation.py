"""Expectations: a condition that each row should meet, and the treatment of rows that do not."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field, model_validator

from millstream.spec.base import Spec


class Otherwise(StrEnum):
    """Treatment of a row that breaks an expectation."""

    WARN = "warn"
    """The row is counted and kept."""
    DROP = "drop"
    """The row is counted and dropped."""
    DEAD_LETTER = "dead_letter"
    """The row and the name of the expectation are stored as a dead letter, and the batch continues."""
    FAIL = "fail"
    """The query stops and names the expectation and the row."""


class Expectation(Spec):
    """A condition that every row should meet. A row for which the expression is false or NULL breaks it."""

    that: str = Field(min_length=1, examples=["amount > 0"])
    """A boolean SQL expression over the columns of one row."""
    otherwise: Otherwise = Otherwise.WARN
    """What happens to a row for which the expression is false or NULL."""

    @model_validator(mode="before")
    @classmethod
    def _wrap_expression(cls, value: Any) -> Any:
        """Read a plain string as the expression."""
        return {"that": value} if isinstance(value, str) else value
