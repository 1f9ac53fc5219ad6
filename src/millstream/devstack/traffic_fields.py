"""How `traffic.yml` declares the fields of a record: one generator a field."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from millstream.spec.base import Spec
from millstream.spec.duration import Duration

# Texts go into JSON as they are, so they hold nothing that JSON would escape.
PLAIN = r'^[^"\\\x00-\x1f]*$'


class Numbered(Spec):
    """Identifiers that count up, such as `o1`, `o2`."""

    prefix: str = Field(default="", pattern=PLAIN)
    """What stands before the number."""
    digits: int = Field(default=1, ge=1, le=18)
    """The number's least width, filled with zeros."""


class Skewed(Spec):
    """Keys of which few are frequent and most are rare (Zipf): `u0001` comes first."""

    prefix: str = Field(default="", pattern=PLAIN)
    """What stands before the number."""
    count: int = Field(ge=1, le=10_000_000)
    """How many keys there are."""
    digits: int = Field(default=1, ge=1, le=18)
    """The number's least width, filled with zeros."""
    exponent: float = Field(default=1.0, ge=0, le=5)
    """How uneven: 0 is even, 1 makes the second key half as frequent as the first."""


class Span(Spec):
    """Numbers from `low` to `high`, both included, all equally likely. A list of two is short for it."""

    low: float
    """The least."""
    high: float
    """The greatest."""
    digits: int = Field(default=2, ge=0, le=9)
    """Places after the point, for `float`."""

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        return {"low": value[0], "high": value[1]} if isinstance(value, list) and len(value) == 2 else value

    @model_validator(mode="after")
    def _ordered(self) -> Span:
        if self.low > self.high:
            raise ValueError(f"the least, {self.low:g}, is above the greatest, {self.high:g}")
        return self


class Session(Spec):
    """Identifiers of sessions: one stays while its owner does something within `idle`."""

    of: str
    """The field that names the owner."""
    idle: Duration = Duration("15 minutes")
    """How long an owner is silent before the next event begins another session."""


class Recent(Spec):
    """A value that another stream gave lately, each of the last ones equally likely."""

    stream: str
    """The other stream."""
    field: str
    """Its field."""
    last: int = Field(default=1000, ge=1, le=1_000_000)
    """How many of its latest values to choose from."""


class FieldSpec(Spec):
    """One field of a record: exactly one generator. A bare word is short for `{word: true}`."""

    uuid: Literal[True] | None = None
    """A random UUID."""
    sequence: Numbered | None = None
    """Identifiers that count up."""
    choice: dict[str, float] | None = None
    """Texts by weight. A list gives each the same weight."""
    skewed: Skewed | None = None
    """Keys of which few are frequent."""
    int_: Span | None = Field(default=None, alias="int")
    """Whole numbers in a range."""
    float_: Span | None = Field(default=None, alias="float")
    """Numbers in a range, rounded."""
    session: Session | None = None
    """Identifiers of a user's sessions."""
    same: str | None = None
    """The value of that field in the event that this stream's event follows."""
    recent: Recent | None = None
    """A value another stream gave lately."""
    constant: str | int | float | bool | None = None
    """The same value in each record."""
    event_time: Literal[True] | None = None
    """When the event happened, as ISO-8601 in UTC with milliseconds: 2026-01-01T12:00:00.123Z."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {value: {} if value == "sequence" else True}
        if isinstance(value, dict) and isinstance(value.get("choice"), list):
            return {**value, "choice": {str(item): 1.0 for item in value["choice"]}}
        return value

    @model_validator(mode="after")
    def _one(self) -> FieldSpec:
        if len(self.given) != 1:
            raise ValueError(f"a field has exactly one generator; this one has {len(self.given)}")
        weights = self.choice or {"": 1.0}
        if min(weights.values()) < 0 or sum(weights.values()) <= 0:
            raise ValueError("weights are not below 0, and one is above")
        return self

    @property
    def given(self) -> list[str]:
        """The generators that are set."""
        return [name for name in type(self).model_fields if getattr(self, name) is not None]

    @property
    def numeric(self) -> bool:
        """Does its value stand in JSON without quotes?"""
        bare = isinstance(self.constant, int | float)
        return self.int_ is not None or self.float_ is not None or bare
