"""Settings as tables: each field of a model with its type, default and meaning."""

from __future__ import annotations

import ast
import inspect
import textwrap
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import yaml

from generators.layout import escaped
from millstream.connectors.api.dead_letters import DeadLetterStore
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.source import Source
from millstream.pipeline.introspection import fields_by_key, split_union
from millstream.pipeline.kinds import KindEntry
from millstream.spec.base import Spec
from millstream.spec.duration import Duration
from millstream.spec.field_docs import with_field_docs
from millstream.spec.location import Location
from millstream.spec.secrets.secret import Secret
from millstream.testing.files import schema

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

WORDS = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Duration: "length of time",
    Location: "path or URI",
    schema.Rows: "list of rows",
    Any: "any value",
}


def table(one: type[Spec]) -> str:
    """A model's fields: key, type, default, meaning."""
    known = fields_by_key(with_field_docs(one))
    if issubclass(one, KindEntry):
        known = {key: field for key, field in known.items() if key != one.kind_field}
    rows = [
        f"| `{key}` | {kind_of(field)} | {default(field)} | {escaped(meaning(field))} |"
        for key, field in known.items()
    ]
    return "\n".join(["| key | type | default | what it is |", "| --- | --- | --- | --- |", *rows])


def kind_of(field: FieldInfo) -> str:
    """A field's type in words."""
    return " or ".join(
        dict.fromkeys(word(part) for part in split_union(field.annotation) if part is not type(None))
    )


def word(part: Any) -> str:
    """One alternative of a type in words."""
    if part in (schema.Rows, Any):
        return WORDS[part]
    origin, inner = get_origin(part), get_args(part)
    if origin is Literal:
        return " or ".join(f"`{spelled(value)}`" for value in inner)
    if origin is dict:
        values = " or ".join(dict.fromkeys(word(value) for value in split_union(inner[1])))
        return (
            "names with a value each"
            if len(set(split_union(inner[1]))) > 1
            else f"names, each with: {values}"
        )
    if origin in (tuple, list):
        return f"list of {' or '.join(dict.fromkeys(map(word, split_union(inner[0]))))}"
    if not isinstance(part, type):
        return "function" if "Callable" in str(part) else str(part)
    if issubclass(part, Enum):
        return " or ".join(f"`{member.value}`" for member in part)
    if issubclass(part, Secret):
        return "secret"
    if issubclass(part, Spec):
        return f"[{part.__name__}](#{part.__name__.lower()})"
    return WORDS.get(part, "time with a zone" if "datetime" in part.__name__.lower() else part.__name__)


def default(field: FieldInfo) -> str:
    """A field's default as a spec would write it."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ((), {}) or isinstance(value, Spec):
        return ""
    return f"`{spelled(value.value if isinstance(value, Enum) else value)}`"


def meaning(field: FieldInfo) -> str:
    """A field's docstring, what each word of a choice means, and an example."""
    text = " ".join((field.description or "").split())
    for part in split_union(field.annotation):
        if isinstance(part, type) and issubclass(part, Enum):
            text += "".join(f" `{value}`: {what}" for value, what in member_docs(part).items())
    examples = field.examples or []
    return (
        f"{text} Example: {' or '.join(f'`{spelled(example)}`' for example in examples)}."
        if examples
        else text
    )


def spelled(value: Any) -> str:
    """A value on one line, as a spec would have it."""
    if isinstance(value, str):
        return str(value)
    return (
        yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False)
        .removesuffix("...\n")
        .strip()
    )


def member_docs(choice: type[Enum]) -> dict[str, str]:
    """The docstring below each member of an enumeration, by the member's value; Python itself drops them."""
    body = ast.parse(textwrap.dedent(inspect.getsource(choice))).body[0].body  # type: ignore[attr-defined]
    actual = {}
    for before, after in pairwise(body):
        if (
            isinstance(before, ast.Assign)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            actual[ast.literal_eval(before.value)] = " ".join(str(after.value.value).split())
    return actual


def models_in(one: type[Spec]) -> list[type[Spec]]:
    """The models that a model's fields hold, however deep, each once; kinds are left to their own pages."""
    actual: list[type[Spec]] = []

    def walk(annotation: Any) -> None:
        for part in split_union(annotation):
            for inner in get_args(part):
                walk(inner)
            if (
                isinstance(part, type)
                and issubclass(part, Spec)
                and part not in (*actual, Source, Sink, DeadLetterStore, one)
            ):
                actual.append(part)
                for field in fields_by_key(part).values():
                    walk(field.annotation)

    for field in fields_by_key(one).values():
        walk(field.annotation)
    return actual
