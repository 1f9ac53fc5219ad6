"""Values of a YAML file by the rules of YAML 1.2, and where each character of one stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"0(?:o[0-7]+|x[0-9a-fA-F]+)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_ODD = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}
# Python refuses to read integers of more digits than this (sys.set_int_max_str_digits); no setting has them.
_DIGITS = 4000
_ESCAPES = {"x": 2, "u": 4, "U": 8}


def resolve(text: str) -> str | int | float | bool | None:
    """What a plain scalar means in YAML 1.2: `no`, `on`, `12:30:00` and dates stay text, `010` is ten."""
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


@dataclass(frozen=True)
class Scalar:
    """A scalar as it stands in the file: its value, and the characters `start` up to `stop` that write it.

    `style` is `|`, `>`, `'`, `"` or empty.
    """

    value: str
    style: str
    start: int
    stop: int

    def places(self, text: str) -> list[int]:
        """For each character of the value, and one past its end, the character of the file it comes from."""
        raw, at, places = text, self.start, []
        if self.style in ("|", ">"):
            header = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?").match(raw, at)
            at = header.end() if header else at
        elif self.style in ("'", '"'):
            at += 1
        for char in self.value:
            at = min(self._next(raw, at, char), self.stop)
            places.append(at)
            at += self._width(raw, at)
        places.append(min(at, self.stop))
        return places

    def _next(self, raw: str, at: int, char: str) -> int:
        """Where a character of the value stands, from `at` on.

        White space is folded by YAML: a visible character skips what stands before it, and a line break
        stands at the next one of the file.
        """
        while at < self.stop:
            here = raw[at]
            if self.style == '"' and here == "\\":
                if raw[at + 1 : at + 2] not in ("\n", "\r"):
                    return at
                # The line goes on below, after its indentation.
                at += 2
                while raw[at : at + 1] in (" ", "\t"):
                    at += 1
            elif here.isspace() and (char == "\n" or not char.isspace()):
                if char == "\n" and here in "\r\n":
                    return at
                at += 1
            else:
                return at
        return at

    def _width(self, raw: str, at: int) -> int:
        """How many characters of the file one character of the value takes."""
        pair = raw[at : at + 2]
        if self.style == '"' and pair[:1] == "\\":
            return 2 + _ESCAPES.get(pair[1:], 0)
        return 2 if pair == "\r\n" or (self.style == "'" and pair == "''") else 1
