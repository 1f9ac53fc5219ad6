"""Durations in Spark's interval syntax: `10 seconds`, `1 hour 30 minutes`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic_core import CoreSchema, core_schema

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

# Spark accepts months too, but a month has no fixed length in microseconds and a watermark refuses it.
_UNITS = {
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SHORT = {
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "secs": "second",
    "m": "minute",
    "min": "minute",
    "mins": "minute",
    "h": "hour",
    "hr": "hour",
    "hrs": "hour",
    "d": "day",
    "w": "week",
}
_PART = re.compile(r"\s*(\d+)\s*([a-zA-Z]+)\s*")


class Duration(str):
    """A duration: the text is in Spark's interval syntax, `micros` is its length in microseconds."""

    micros: int

    def __new__(cls, text: str) -> Duration:
        """Parse `10 seconds`, `90s`, `5 min` or `1 hour 30 minutes`. Raises ValueError with a readable message."""
        total, position = 0, 0
        words: list[str] = []
        while position < len(text) and (part := _PART.match(text, position)):
            count, unit = int(part[1]), part[2].lower()
            name = _SHORT.get(unit, unit.removesuffix("s"))
            if name not in _UNITS:
                break
            total += count * _UNITS[name]
            words.append(f"{count} {name}" + ("" if count == 1 else "s"))
            position = part.end()
        if not words or position < len(text):
            raise ValueError(
                f"'{text}' is not a length of time; write it as '10 seconds' or '1 hour 30 minutes'"
            )
        self = super().__new__(cls, " ".join(words))
        self.micros = total
        return self

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return self.micros / 1_000_000

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema(min_length=1))
