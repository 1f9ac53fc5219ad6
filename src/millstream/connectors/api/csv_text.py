"""Read lines of CSV without a schema (separator, numbers, booleans, texts), and write lines that Spark reads."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SEPARATORS = ",;\t|"
# Lines by which a separator is found.
_LOOK_AT = 100
# In a separator, as Spark reads the option.
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "b": "\b", "f": "\f", "u0000": "\0"}


class UnwritableText(ValueError):
    """A text needs quotes or an escape that the options of the reader do not have."""


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


def format_line(values: Iterable[str | float | None], options: Mapping[str, Any]) -> str:
    """Return the line that Spark reads as these values, with the options of its CSV reader in any case.

    Texts have quotes, None is the `nullValue`. Spark reads a text that equals the `nullValue`, by default an empty
    one, as NULL. Raises `UnwritableText` for one that needs quotes or an escape which the options do not have.
    """
    settings = {name.lower(): value for name, value in options.items()}
    separator = str(settings.get("sep", settings.get("delimiter", ",")))
    separator = re.sub(r"\\(u0000|.)", lambda match: _ESCAPES.get(match[1], match[1]), separator)
    quote, escape = str(settings.get("quote", '"')), str(settings.get("escape", "\\"))
    escape_of_escape = str(settings.get("chartoescapequoteescaping", "" if escape == quote else escape))

    def format_value(value: str | float | None) -> str:
        if value is None:
            return str(settings.get("nullvalue", ""))
        if not isinstance(value, str):
            # Booleans and floats such as NaN have the same form in JSON.
            return json.dumps(value)
        if not quote and (separator in value or "\n" in value):
            raise UnwritableText(f"{value!r} needs quotes, which the options do not have")
        if not quote:
            return value
        if quote in value and not escape:
            raise UnwritableText(f"{value!r} contains a quote, and the options have no 'escape'")
        if escape and escape_of_escape:
            value = value.replace(escape, escape_of_escape + escape)
        return f"{quote}{value.replace(quote, escape + quote)}{quote}"

    # An empty line would be skipped.
    return separator.join(map(format_value, values)) or 2 * quote
