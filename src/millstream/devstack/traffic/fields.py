"""Declarations of record fields in `traffic.yml`: one generator per field."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, model_validator

from millstream.spec.base import Spec
from millstream.spec.duration import Duration

# Texts are inserted into JSON unchanged, so they must not contain characters that JSON escapes.
PLAIN = r'^[^"\\\x00-\x1f]*$'


class NumberedIds(Spec):
    """Sequential identifiers, such as `o1`, `o2`."""

    prefix: str = Field(default="", pattern=PLAIN)
    """Text before the number."""
    digits: int = Field(default=1, ge=1, le=18)
    """Minimum width of the number, padded with zeros."""


class SkewedKeys(Spec):
    """Keys with a Zipf distribution: few are frequent and most are rare; `u0001` is the most frequent."""

    prefix: str = Field(default="", pattern=PLAIN)
    """Text before the number."""
    count: int = Field(ge=1, le=10_000_000)
    """Number of distinct keys."""
    digits: int = Field(default=1, ge=1, le=18)
    """Minimum width of the number, padded with zeros."""
    exponent: float = Field(default=1.0, ge=0, le=5)
    """Skew: 0 is uniform, 1 makes the second key half as frequent as the first."""


class NumberRange(Spec):
    """Numbers from `low` to `high`, both included, all equally likely; can be written as a list of two."""

    low: float
    """The smallest number."""
    high: float
    """The largest number."""
    digits: int = Field(default=2, ge=0, le=9)
    """Decimal places, for `float`."""

    @model_validator(mode="before")
    @classmethod
    def _expand_pair(cls, value: Any) -> Any:
        return {"low": value[0], "high": value[1]} if isinstance(value, list) and len(value) == 2 else value

    @model_validator(mode="after")
    def _require_order(self) -> NumberRange:
        if self.low > self.high:
            raise ValueError(f"the smallest number, {self.low:g}, is above the largest, {self.high:g}")
        return self


class Session(Spec):
    """Session identifiers: a session lasts while its owner is active within `idle`."""

    of: str
    """The field that identifies the owner."""
    idle: Duration = Duration("15 minutes")
    """Time without events after which the owner's next event starts a new session."""


class Recent(Spec):
    """A recent value of another stream, each of the last ones equally likely."""

    stream: str
    """The other stream."""
    field: str
    """The field of the other stream."""
    last: int = Field(default=1000, ge=1, le=1_000_000)
    """Number of latest values to choose from."""


class FieldSpec(Spec):
    """One field of a record: exactly one generator. A plain word means `{word: true}`."""

    uuid: Literal[True] | None = None
    """A random UUID."""
    sequence: NumberedIds | None = None
    """Sequential identifiers."""
    choice: dict[str, float] | None = None
    """Texts by weight. In a list all have the same weight."""
    skewed: SkewedKeys | None = None
    """Keys with a skewed distribution."""
    int_: NumberRange | None = Field(default=None, alias="int")
    """Whole numbers in a range."""
    float_: NumberRange | None = Field(default=None, alias="float")
    """Numbers in a range, rounded."""
    session: Session | None = None
    """Session identifiers."""
    same: str | None = None
    """The value of this field in the event that is followed."""
    recent: Recent | None = None
    """A recent value of another stream."""
    constant: str | int | float | bool | None = None
    """The same value in every record."""
    event_time: Literal[True] | None = None
    """When the event happened, as ISO-8601 in UTC with milliseconds: 2026-01-01T12:00:00.123Z."""

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {value: {} if value == "sequence" else True}
        if isinstance(value, dict) and isinstance(value.get("choice"), list):
            return {**value, "choice": {str(item): 1.0 for item in value["choice"]}}
        return value

    @model_validator(mode="after")
    def _require_one_generator(self) -> FieldSpec:
        if len(self.generators) != 1:
            raise ValueError(f"a field has exactly one generator; this one has {len(self.generators)}")
        weights = self.choice or {"": 1.0}
        if min(weights.values()) < 0 or sum(weights.values()) <= 0:
            raise ValueError("weights must not be negative, and at least one must be positive")
        for text in self.choice or ():
            if not re.fullmatch(PLAIN, text):
                raise ValueError(f"the choice {text!r} contains a quote, a backslash or a control character")
        return self

    @property
    def generators(self) -> list[str]:
        """The generators that are set."""
        return [name for name in type(self).model_fields if getattr(self, name) is not None]

    @property
    def is_numeric(self) -> bool:
        """Whether the value is written in JSON without quotes."""
        is_number = isinstance(self.constant, int | float)
        return self.int_ is not None or self.float_ is not None or is_number
