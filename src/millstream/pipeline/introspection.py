"""Look up a path of a spec in the model: its model class, its known keys, and whether its value is secret."""

from __future__ import annotations

import difflib
import types
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from millstream.pipeline.kinds import KindEntry
from millstream.pipeline.model import Pipeline
from millstream.spec.base import Spec
from millstream.spec.field_docs import with_field_docs
from millstream.spec.secrets.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic.fields import FieldInfo

# Fields that the loader sets; they are unknown as keys of a file.
OURS = frozenset({"folder", "file"})


def fields_by_key(model: type[Spec]) -> dict[str, FieldInfo]:
    """Return the fields of a model by their key in a spec."""
    hidden_fields = OURS if model is Pipeline else frozenset()
    return {
        field.alias or name: field for name, field in model.model_fields.items() if name not in hidden_fields
    }


def allowed_keys(model: type[Spec]) -> list[str]:
    """Return the keys that a mapping of that model may have, including the kinds."""
    keys = list(fields_by_key(model))
    if issubclass(model, KindEntry):
        return [*model.kinds(), *(key for key in keys if key != model.kind_field)]
    return keys


def find_nearest(word: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """Return the known word most similar to this one, or None. `alike` is the least similarity; 1 means equal."""
    by_plain_word = {_plain(other): other for other in known}
    matches = difflib.get_close_matches(_plain(word), by_plain_word, n=1, cutoff=alike)
    return by_plain_word[matches[0]] if matches else None


def _plain(word: str) -> str:
    """Return a word without the differences between spellings: case, dashes and underscores."""
    return word.lower().replace("_", "").replace("-", "")


def model_at(path: Iterable[str | int]) -> type[Spec] | None:
    """Return the model of the mapping at a path, or None if its keys are free."""
    kinds = types_at(path)
    # A single sink is accepted where a list of sinks is expected.
    items = [item for kind in kinds if get_origin(kind) is tuple for item in split_union(get_args(kind)[0])]
    return next(
        (kind for kind in [*kinds, *items] if isinstance(kind, type) and issubclass(kind, Spec)), None
    )


def is_secret_at(path: Iterable[str | int]) -> bool:
    """Return whether the value at a path must be redacted."""
    return any(isinstance(kind, type) and issubclass(kind, Secret) for kind in types_at(path))


def field_at(path: tuple[str | int, ...]) -> FieldInfo | None:
    """Return the field at a path, with its description, or None if the keys there are free."""
    if not path:
        return None
    model = model_at(path[:-1])
    return fields_by_key(with_field_docs(model)).get(str(path[-1])) if model else None


def types_at(path: Iterable[str | int]) -> list[Any]:
    """Return the types that a value at a path may have, with unions split."""
    current: list[Any] = [Pipeline]
    for step in path:
        current = [inner for kind in current for inner in _inside(kind, step)]
    return current


def _inside(kind: Any, step: str | int) -> Iterator[Any]:
    """Yield the types one step deeper."""
    if isinstance(kind, type) and issubclass(kind, Spec):
        if issubclass(kind, KindEntry) and step in kind.kinds():
            yield kind.kinds()[str(step)]
        elif step in (known := fields_by_key(kind)):
            yield from split_union(known[str(step)].annotation)
            yield from (item for item in known[str(step)].metadata if isinstance(item, type))
        return
    origin, inner = get_origin(kind), get_args(kind)
    if origin is dict and len(inner) == 2:
        yield from split_union(inner[1])
    elif origin in (tuple, list, frozenset, set) and inner:
        for item in split_union(inner[0]):
            yield from (item,) if isinstance(step, int) else _inside(item, step)


def split_union(annotation: Any) -> Iterator[Any]:
    """Yield the alternatives of an annotation: `str | None` yields both."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from split_union(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for part in get_args(annotation):
            yield from split_union(part)
    else:
        yield annotation
