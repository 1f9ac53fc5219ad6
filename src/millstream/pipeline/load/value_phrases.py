"""Describe keys and values of a spec in messages: the key, what it accepts, and its actual value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from millstream.pipeline.introspection import field_at, is_secret_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.pipeline.load.document import Path

# The values that a key accepts, by the type of pydantic's error.
_TAKES = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "dict": "a mapping",
    "mapping": "a mapping",
    "model": "a mapping",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen": "a list",
    "callable": "a function",
    "none": "nothing",
}
_LIMITS = {
    "greater_than": ("gt", "a number above {}"),
    "greater_than_equal": ("ge", "a number of at least {}"),
    "less_than": ("lt", "a number below {}"),
    "less_than_equal": ("le", "a number of at most {}"),
    "multiple_of": ("multiple_of", "a multiple of {}"),
    "string_pattern_mismatch": ("pattern", "text of the form {}"),
    "string_too_short": ("min_length", "text of at least {} characters"),
    "string_too_long": ("max_length", "text of at most {} characters"),
    "too_short": ("min_length", "at least {} of them"),
    "too_long": ("max_length", "at most {} of them"),
}
# Patterns of names begin like this; messages describe them in words.
_NAME = "^[A-Za-z"
_LONG = 60
# A shorter value may also be a word of the message itself, so it is only recognised between quotation marks.
_SHORT = 4
_SECTIONS = {"sources": "source", "views": "view", "queries": "query"}


def describe_path(path: Path) -> str:
    """Describe a path: `'subscribe' of source 'clicks'`."""
    if not path:
        return "the spec"
    words = [str(step) for step in path if not isinstance(step, int)]
    if words[0] in _SECTIONS and len(words) > 1:
        owner = f"{_SECTIONS[words[0]]} '{words[1]}'"
        return owner if len(words) == 2 else f"'{words[-1]}' of {owner}"
    return f"'{'.'.join(words)}'"


def describe_expected(kind: str, context: Mapping[str, Any]) -> str | None:
    """Describe the values that a key accepts, by the type of the error; None if its message is clear by itself."""
    if kind in ("enum", "literal_error"):
        return str(context["expected"]).replace("'", "")
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        if name == "pattern" and str(context[name]).startswith(_NAME):
            return "a name of letters, digits, '_' and '-' that begins with a letter"
        if kind == "string_too_short" and context[name] == 1:
            return "text that is not empty"
        if kind == "too_short" and context[name] == 1:
            return "at least one"
        return words.format(context[name])
    return _TAKES.get(kind.split("_")[0])


def describe_value(path: Path, value: Any, variables: Mapping[Path, tuple[str, str]]) -> str:
    """Describe a value for a message: a secret is not shown, a variable is shown as written in the file."""
    if path in variables:
        return f"the value of {variables[path][0]}"
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping" if value else "an empty mapping"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case _ if is_secret_at(path):
            return "this"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value) if len(str(value)) <= _LONG else "a number of many digits"
        case str():
            return f"'{value}'" if len(value) <= _LONG else f"'{value[:_LONG]}…'"
        case _:
            return f"a {type(value).__name__}"


def describe_purpose(path: Path) -> str:
    """Return the purpose of a key, from its documentation in the model."""
    field = field_at(path)
    text = (field.description or "").strip().split("\n\n")[0].replace("\n", " ") if field else ""
    return f"'{path[-1]}': {text[:1].lower()}{text[1:]}".rstrip(".") if text else ""


def _find_quotations(value: str) -> re.Pattern[str]:
    """Return a pattern for the places at which a message quotes a value, and not a part of another word."""
    escaped = re.escape(value)
    if len(value) < _SHORT:
        return re.compile(rf"(?<='){escaped}(?=')")
    before = r"(?<!\w)" if value[0].isalnum() else ""
    after = r"(?!\w)" if value[-1].isalnum() else ""
    return re.compile(f"{before}{escaped}{after}")


def restore_variables(message: str, path: Path, variables: Mapping[Path, tuple[str, str]]) -> str:
    """Replace values of variables in a message, at that path or inside, with their text in the file."""
    for place, (text, value) in variables.items():
        depth = min(len(place), len(path))
        if value and place[:depth] == path[:depth]:
            message = _find_quotations(value).sub(text.replace("\\", r"\\"), message)
    return message
