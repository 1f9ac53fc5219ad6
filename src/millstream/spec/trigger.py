"""Triggers: when a query starts its next batch."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from millstream.spec.base import Spec
from millstream.spec.duration import Duration

WORDS = ("once", "available_now", "default")


class Trigger(Spec):
    """One of Spark's triggers, so at most one key may be set.

    If none is set, Spark starts the next batch as soon as the previous one ends.

    In a spec: `10 seconds`, `once`, `available_now`, `{processing_time: 10 seconds}`,
    `{continuous: 1 second}` or `{real_time: 5 minutes}`.
    """

    processing_time: Duration | None = None
    """Start a batch at this interval."""
    once: Literal[True] | None = None
    """Read all available data in one batch, then stop. Spark deprecates it in favor of `available_now`."""
    available_now: Literal[True] | None = None
    """Read all data available at the start, in batches within the source's limits, then stop."""
    continuous: Duration | None = None
    """Use Spark's continuous processing, with a checkpoint at this interval."""
    real_time: Duration | None = None
    """Use Spark's real-time mode, with a checkpoint at this interval."""

    @model_validator(mode="before")
    @classmethod
    def _parse_word(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value == "default":
            return {}
        return {value: True} if value in WORDS else {"processing_time": value}

    @model_validator(mode="after")
    def _require_at_most_one(self) -> Trigger:
        fields = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(fields) > 1:
            raise ValueError(f"a trigger is one of {', '.join(fields)}, not several")
        return self

    @property
    def has_end(self) -> bool:
        """Whether the query stops by itself."""
        return bool(self.once or self.available_now)

    @property
    def flows(self) -> Literal["continuous", "real_time"] | None:
        """The mode in which Spark processes rows one by one instead of in batches; None for batches."""
        return "continuous" if self.continuous else "real_time" if self.real_time else None

    @property
    def interval_seconds(self) -> float | None:
        """The seconds from the start of a batch to that of the next one; None if batches have no interval."""
        return self.processing_time.seconds if self.processing_time else None

    @property
    def checkpoint_seconds(self) -> float | None:
        """The seconds between two checkpoints of a query that processes rows one by one; None for batches."""
        interval = self.continuous or self.real_time
        return interval.seconds if interval else None

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of `DataStreamWriter.trigger`; empty for Spark's default."""
        names = {
            "processing_time": "processingTime",
            "once": "once",
            "available_now": "availableNow",
            "continuous": "continuous",
            "real_time": "realTime",
        }
        arguments = ((spark, getattr(self, field)) for field, spark in names.items())
        return {
            key: str(value) if isinstance(value, str) else value
            for key, value in arguments
            if value is not None
        }

    def __str__(self) -> str:
        for name in type(self).model_fields:
            value = getattr(self, name)
            if value is not None:
                return name if value is True else f"{name} {value}"
        return "default"
