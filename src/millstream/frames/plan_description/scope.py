"""The columns of one operator of a plan, each as a text over the columns of sources."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Longer texts keep their beginning and a hash. A window of a window would otherwise grow without end.
MAX_CHARACTERS = 4000
_ID = re.compile(r"#(\d+)L?(?:-T\d+ms)?$")
_UNKNOWN_ID = re.compile(r"#\d+L?(?:-T\d+ms)?")
_ALIAS = re.compile(r"^(?P<text>.*) AS (?P<name>.*?)#(?P<id>\d+)L?(?:-T\d+ms)?$", re.DOTALL)
# Columns of a source's decoded records, and what Spark derives from them to count malformed ones.
_DECODED = re.compile(r"\b_millstream_decoded\.")

_CONVERSION = r"precisetimestampconversion\("
# The optimised form of window(column, duration, slide, start), as TimeWindowing and ResolveTimeWindows write it.
_WINDOW = re.compile(
    r"named_struct\(start, (?:knownnullable\()?"
    + _CONVERSION
    + r"\(\("
    + _CONVERSION
    + r"(?P<column>.*?), Timestamp(?:NTZ)?Type, LongType\) - CASE WHEN "
    r".*? - (?P<origin>-?\d+)\) % (?P<slide>\d+)\) < 0\)"
    r".*? END\) - (?P<shift>-?\d+)\), LongType, Timestamp(?:NTZ)?Type\)\)?, end, "
    r".*? END\) - -?\d+\) \+ (?P<duration>\d+)\), LongType, Timestamp(?:NTZ)?Type\)\)*\)",
    re.DOTALL,
)
_SESSION = re.compile(
    r"named_struct\(start, "
    + _CONVERSION
    + _CONVERSION
    + r"(?P<column>.*?), Timestamp(?:NTZ)?Type, LongType\), LongType, Timestamp(?:NTZ)?Type\), end, .*? \+ "
    r"(?P<gap>.*?), Timestamp(?:NTZ)?Type, LongType\), LongType, Timestamp(?:NTZ)?Type\)\)\)",
    re.DOTALL,
)
_UNITS = (
    (86_400_000_000, "day"),
    (3_600_000_000, "hour"),
    (60_000_000, "minute"),
    (1_000_000, "second"),
    (1, "microsecond"),
)


@dataclass(frozen=True)
class Scope:
    """The columns by their expression id: the name in the plan, and the text over columns of sources."""

    columns: dict[str, tuple[str, str]] = field(default_factory=dict)

    def merged(self, other: Scope) -> Scope:
        """Return the columns of both."""
        return Scope({**self.columns, **other.columns})

    def resolve(self, text: str) -> str:
        """Return an expression of the plan with each column replaced by its text."""
        if "#" in text:
            present = [
                (name, expression_id)
                for expression_id, (name, _) in self.columns.items()
                if f"{name}#{expression_id}" in text
            ]
            if present:
                # Longer names first: `user id#3` contains `id#3`.
                options = "|".join(
                    re.escape(f"{n}#{i}") for n, i in sorted(present, key=lambda p: -len(p[0]))
                )
                pattern = re.compile(rf"(?:{options})(?!\d)L?(?:-T\d+ms)?")
                text = pattern.sub(lambda match: self._text_of(match.group()), text)
        return shorten(_UNKNOWN_ID.sub("", _DECODED.sub("", phrase_windows(text))))

    def _text_of(self, attribute: str) -> str:
        return self.columns[split_attribute(attribute)[1]][1]

    def define(self, expressions: list[str], output: list[str]) -> Scope:
        """Return the scope above a projection. `output` are the columns in the plan's text, one per expression."""
        columns = {}
        for expression, attribute in zip(expressions, output, strict=True):
            alias = _ALIAS.match(expression)
            name, expression_id = split_attribute(attribute)
            columns[expression_id] = (name, self.resolve(alias["text"] if alias else expression))
        return Scope(columns)

    def keep(self, output: list[str], added: Sequence[str]) -> Scope:
        """Return the scope above an operator that passes columns through and adds columns with these texts."""
        columns, texts = {}, iter(added)
        for number, attribute in enumerate(output):
            name, expression_id = split_attribute(attribute)
            known = self.columns.get(expression_id)
            columns[expression_id] = (name, known[1] if known else shorten(next(texts, f"column {number}")))
        return Scope(columns)


def split_attribute(attribute: str) -> tuple[str, str]:
    """Split `user#12L` into its name and its id."""
    match = _ID.search(attribute)
    return (attribute[: match.start()], match[1]) if match else (attribute, attribute)


def shorten(text: str) -> str:
    """Return a text, or its beginning and a hash if it is long."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[: MAX_CHARACTERS // 2]}… {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def phrase_windows(text: str) -> str:
    """Write the optimised form of event-time windows as `window(column, 10 minutes)`."""
    if "precisetimestampconversion(" not in text:
        return text
    text = _WINDOW.sub(_phrase_window, text)
    return _SESSION.sub(lambda match: f"session_window({match['column']}, {match['gap']})", text)


def _phrase_window(match: re.Match[str]) -> str:
    duration, slide, start = int(match["duration"]), int(match["slide"]), int(match["origin"])
    parts = [match["column"], format_micros(duration)]
    if slide != duration or start:
        parts.append(format_micros(slide))
    if start:
        parts.append(format_micros(start))
    return f"window({', '.join(parts)})"


def format_micros(micros: int) -> str:
    """Return a number of microseconds in the largest unit that divides it: `15 minutes`."""
    size, unit = next(entry for entry in _UNITS if micros % entry[0] == 0)
    count = micros // size
    return f"{count} {unit}" + ("" if count == 1 else "s")
