"""Rewrite f-strings of Python 3.12 for an older Python, which does not accept every expression in them."""

from __future__ import annotations

import ast
import re

_STRING = re.compile(r"(?<!\w)([bfru]{0,2})('''|\"\"\"|'|\")", re.IGNORECASE)
_CONVERSION = re.compile(r"![ars](?=[:}])")
_OPENING, _CLOSING = "([{", ")]}"


class _UnsupportedError(Exception):
    """An expression that has no older form of the same lines."""


def in_older_syntax(text: str) -> str | None:
    """Return Python text whose f-strings an older Python accepts, on the same lines; None if there is none.

    Before Python 3.12, an expression in an f-string cannot contain the quotes of the f-string, nor a backslash.
    """
    try:
        older = "".join(_rewrite_code(text))
        ast.parse(older)
    except (_UnsupportedError, SyntaxError, ValueError, IndexError):
        return None
    return older


def _rewrite_code(text: str) -> list[str]:
    """Return the pieces of a text, with each f-string rewritten."""
    pieces, index = [], 0
    while index < len(text):
        if text[index] == "#":
            stop = text.find("\n", index)
            piece = text[index:] if stop < 0 else text[index:stop]
            index += len(piece)
        elif (start := _STRING.match(text, index)) is not None:
            index, piece = _rewrite_string(text, start, ())
        else:
            piece = text[index]
            index += 1
        pieces.append(piece)
    return pieces


def _rewrite_string(text: str, start: re.Match[str], around: tuple[str, ...]) -> tuple[int, str]:
    """Return where a string ends, and its text inside of f-strings that have the quotes `around`."""
    quote, is_formatted = start[2], "f" in start[1].lower()
    index, pieces = start.end(), [start[0]]
    while not text.startswith(quote, index):
        if text[index] == "\\":
            piece = text[index : index + 2]
            index += 2
        elif is_formatted and text[index] == "{" and text[index + 1] != "{":
            index, piece = _rewrite_expression(text, index + 1, (*around, quote))
            piece = "{" + piece
        else:
            width = 2 if is_formatted and text.startswith("{{", index) else 1
            piece = text[index : index + width]
            index += width
        pieces.append(piece)
    string = "".join((*pieces, quote))
    return index + len(quote), _fit_string(string, start, around) if around else string


def _rewrite_expression(text: str, index: int, around: tuple[str, ...]) -> tuple[int, str]:
    """Return where an expression of an f-string ends, with its bracket, and its text with the format."""
    pieces: list[str] = []
    depth = 0
    while depth or text[index] not in ":}":
        if not depth and (conversion := _CONVERSION.match(text, index)) is not None:
            piece, index = conversion[0], conversion.end()
        elif (start := _STRING.match(text, index)) is not None:
            index, piece = _rewrite_string(text, start, around)
        elif text[index] in "\\#" or (text[index] == "\n" and len(around[0]) == 1):
            raise _UnsupportedError
        else:
            piece = text[index]
            depth += (piece in _OPENING) - (piece in _CLOSING)
            index += 1
        pieces.append(piece)
    while text[index] != "}":
        # The format, in which expressions may be too.
        if text[index] == "{":
            index, piece = _rewrite_expression(text, index + 1, around)
            piece = "{" + piece
        else:
            piece = text[index]
            index += 1
        pieces.append(piece)
    return index + 1, "".join((*pieces, "}"))


def _fit_string(string: str, start: re.Match[str], around: tuple[str, ...]) -> str:
    """Return a string without backslashes, and without the quotes of the f-strings around it."""
    if "\\" not in string and not any(quote in string for quote in around):
        return string
    body = string[len(start[0]) : -len(start[2])]
    for quote in ("'", '"'):
        if quote not in body and "\\" not in body and "\n" not in body and quote not in around:
            return f"{start[1]}{quote}{body}{quote}"
    if "f" in start[1].lower() or "b" in start[1].lower():
        raise _UnsupportedError
    characters = ", ".join(str(ord(character)) for character in ast.literal_eval(string))
    return f"str().join(map(chr, [{characters}]))"
