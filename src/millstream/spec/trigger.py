"""When a query starts its next batch."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from millstream.spec.base import Spec
from millstream.spec.duration import Duration

WORDS = ("once", "available_now", "default")


class Trigger(Spec):
    """Spark's triggers; exactly one field is set, none for Spark's default (the next batch at once).

    In a spec: `10 seconds`, `once`, `available_now`, `{processing_time: 10 seconds}`,
    `{continuous: 1 second}` or `{real_time: 5 minutes}`.
    """

    processing_time: Duration | None = None
    """Start a batch each time this long has passed."""
    once: Literal[True] | None = None
    """One batch of all there is, then stop. Spark deprecates it for `available_now`."""
    available_now: Literal[True] | None = None
    """Read all there is at the start, in batches within the source's limits, then stop."""
    continuous: Duration | None = None
    """Spark's continuous processing, with a checkpoint each time this long has passed."""
    real_time: Duration | None = None
    """Spark's real-time mode, with a checkpoint each time this long has passed."""

    @model_validator(mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value == "default":
            return {}
        return {value: True} if value in WORDS else {"processing_time": value}

    @model_validator(mode="after")
    def _one(self) -> Trigger:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"a trigger is one of {', '.join(given)}, not several")
        return self

    @property
    def ends(self) -> bool:
        """Does the query stop by itself?"""
        return bool(self.once or self.available_now)

    @property
    def flows(self) -> Literal["continuous", "real_time"] | None:
        """Under which of Spark's ways rows pass one by one, without batches; None for batches."""
        return "continuous" if self.continuous else "real_time" if self.real_time else None

    def options(self) -> dict[str, Any]:
        """The keyword arguments of `DataStreamWriter.trigger`; empty for Spark's default."""
        names = {
            "processing_time": "processingTime",
            "once": "once",
            "available_now": "availableNow",
            "continuous": "continuous",
            "real_time": "realTime",
        }
        given = ((spark, getattr(self, ours)) for ours, spark in names.items())
        return {
            key: str(value) if isinstance(value, str) else value for key, value in given if value is not None
        }

    def __str__(self) -> str:
        for name in type(self).model_fields:
            value = getattr(self, name)
            if value is not None:
                return name if value is True else f"{name} {value}"
        return "default"
