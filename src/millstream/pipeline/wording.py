"""A model's error in the words of a spec: which key, what it takes, what it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.pipeline.describe import field_at, secret_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.pipeline.document import Path

# What a key takes, by the type of the model's error.
_TAKES = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "dict": "keys with values",
    "mapping": "keys with values",
    "model": "keys with values",
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
# Names have patterns like this one; a person reads them better in words.
_NAME = "^[A-Za-z"
_LONG = 60
_SECTIONS = {"sources": "source", "views": "view", "queries": "query"}


def called(path: Path) -> str:
    """A place in words: `'subscribe' of source 'clicks'`."""
    if not path:
        return "the spec"
    words = [str(step) for step in path if not isinstance(step, int)]
    if words[0] in _SECTIONS and len(words) > 1:
        owner = f"{_SECTIONS[words[0]]} '{words[1]}'"
        return owner if len(words) == 2 else f"'{words[-1]}' of {owner}"
    return f"'{'.'.join(words)}'"


def takes(kind: str, context: Mapping[str, Any]) -> str | None:
    """What a key takes, by the error that refused its value; None for an error that speaks for itself."""
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


def given(path: Path, value: Any, written: Mapping[Path, tuple[str, str]]) -> str:
    """A value as a message may show it: a secret not at all, a variable's as it stands in the file."""
    if path in written:
        return f"what {written[path][0]} gives"
    match value:
        case None:
            return "nothing"
        case dict():
            return "keys with values" if value else "an empty mapping"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case _ if secret_at(path):
            return "this"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value) if len(str(value)) <= _LONG else "a number of many digits"
        case str():
            return f"'{value}'" if len(value) <= _LONG else f"'{value[:_LONG]}…'"
        case _:
            return f"a {type(value).__name__}"


def reason(path: Path) -> str:
    """What a key is for, from the model."""
    field = field_at(path)
    text = (field.description or "").strip().split("\n\n")[0].replace("\n", " ") if field else ""
    return f"'{path[-1]}': {text[:1].lower()}{text[1:]}".rstrip(".") if text else ""


def hide(message: str, path: Path, written: Mapping[Path, tuple[str, str]]) -> str:
    """The message with the values of variables in it, at that place or inside, as they stand in the file."""
    for place, (text, value) in written.items():
        shorter = min(len(place), len(path))
        if value and place[:shorter] == path[:shorter]:
            message = message.replace(value, text)
    return message
