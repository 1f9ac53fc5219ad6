"""What a row is expected to be, and what becomes of one that is not."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field, model_validator

from millstream.spec.base import Spec


class Otherwise(StrEnum):
    """What becomes of a row for which an expectation does not hold."""

    WARN = "warn"
    """The row is counted and kept."""
    DROP = "drop"
    """The row is counted and left out."""
    DEAD_LETTER = "dead_letter"
    """The row is set aside with the expectation's name, and the batch goes on."""
    FAIL = "fail"
    """The query stops and names the expectation and the row."""


class Expectation(Spec):
    """What every row is expected to be. It holds where its expression is true: false and NULL both break it."""

    that: str = Field(min_length=1, examples=["amount > 0"])
    """A SQL expression over the columns of one row that gives true or false."""
    otherwise: Otherwise = Otherwise.WARN
    """What becomes of a row for which it is not true."""

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        """A bare text is the expression."""
        return {"that": value} if isinstance(value, str) else value
