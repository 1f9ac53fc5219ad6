"""Resolve YAML scalars by the rules of YAML 1.2, map their characters to positions in the file, and write values."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"0(?:o[0-7]+|x[0-9a-fA-F]+)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_ODD = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}
# Python refuses to parse integers with more digits than this (sys.set_int_max_str_digits); no setting needs them.
_DIGITS = 4000
_ESCAPES = {"x": 2, "u": 4, "U": 8}
# Characters that JSON allows in a text, and that YAML refuses or takes for the end of a line.
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def resolve_scalar(text: str) -> str | int | float | bool | None:
    """Return the value of a plain scalar in YAML 1.2: `no`, `on`, `12:30:00` and dates stay text, `010` is ten."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if len(text) < _DIGITS:
        if _INT.match(text):
            return int(text)
        if _BASED.match(text):
            return int(text, 0)
        if _FLOAT.match(text):
            return float(text)
    return float(_ODD[text.lower()]) if text.lower() in _ODD else text


def dump_value(value: Any) -> str:
    """Write a value of JSON on one line of YAML. Texts are in double quotes."""
    # YAML has no escapes for the two halves of a character above U+FFFF.
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


@dataclass(frozen=True)
class Scalar:
    """A scalar in the file: its value, and its characters from `start` up to `stop`.

    `style` is `|`, `>`, `'`, `"` or empty.
    """

    value: str
    style: str
    start: int
    stop: int

    def places(self, text: str) -> list[int]:
        """Return the position in the file of each character of the value, and of the end."""
        raw, position, places = text, self.start, []
        if self.style in ("|", ">"):
            header = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?").match(raw, position)
            position = header.end() if header else position
        elif self.style in ("'", '"'):
            position += 1
        for char in self.value:
            position = min(self._next(raw, position, char), self.stop)
            places.append(position)
            position += self._width(raw, position)
        places.append(min(position, self.stop))
        return places

    def _next(self, raw: str, at: int, char: str) -> int:
        """Return the position of a character of the value, searching from `at`.

        YAML folds white space: a visible character skips the white space before it, and a line break maps to the
        next line break of the file.
        """
        while at < self.stop:
            char_in_file = raw[at]
            if self.style == '"' and char_in_file == "\\":
                if raw[at + 1 : at + 2] not in ("\n", "\r"):
                    return at
                # The text continues on the next line, after its indentation.
                at += 2
                while raw[at : at + 1] in (" ", "\t"):
                    at += 1
            elif char_in_file.isspace() and (char == "\n" or not char.isspace()):
                if char == "\n" and char_in_file in "\r\n":
                    return at
                at += 1
            else:
                return at
        return at

    def _width(self, raw: str, at: int) -> int:
        """Return the number of characters in the file for one character of the value."""
        pair = raw[at : at + 2]
        if self.style == '"' and pair[:1] == "\\":
            return 2 + _ESCAPES.get(pair[1:], 0)
        return 2 if pair == "\r\n" or (self.style == "'" and pair == "''") else 1
