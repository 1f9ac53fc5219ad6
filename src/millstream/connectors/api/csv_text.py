"""Read lines of CSV without a schema: the separator, and the values as numbers, booleans and texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_SEPARATORS = ",;\t|"
# Lines by which a separator is found.
_LOOK_AT = 100


def parse_text(text: str) -> Any:
    """Return the number, boolean or text of a CSV value; None for an empty one."""
    if text == "":
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    # A number with a leading zero is a code, such as a postal code.
    if re.fullmatch(r"-?(0|[1-9]\d{0,17})", text):
        return int(text)
    if re.fullmatch(r"-?(0|[1-9]\d*)?\.\d+([eE][-+]?\d+)?|-?\d+[eE][-+]?\d+", text):
        return float(text)
    return text


def find_separator(lines: Sequence[str]) -> str:
    """Return the separator that most lines have as often as the first line."""
    return max(_SEPARATORS, key=lambda separator: count_consistent(lines, separator))


def count_consistent(lines: Sequence[str], separator: str) -> int:
    """Return how many of the first lines have as many of this separator as the very first; 0 if that has none."""
    counts = [line.count(separator) for line in lines[:_LOOK_AT]]
    return sum(count == counts[0] for count in counts) if counts and counts[0] else 0
