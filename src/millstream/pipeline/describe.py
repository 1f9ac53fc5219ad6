"""What the model says about a place of a spec: its model, the keys it knows, whether it is secret."""

from __future__ import annotations

import difflib
import types
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from millstream.pipeline.kinds import KindEntry
from millstream.pipeline.model import Pipeline
from millstream.spec.base import Spec
from millstream.spec.documented import documented
from millstream.spec.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic.fields import FieldInfo

# Fields that the loader fills in; as keys of a file they are unknown.
OURS = frozenset({"folder", "file"})


def fields(model: type[Spec]) -> dict[str, FieldInfo]:
    """The fields of a model by the key they have in a spec."""
    hidden = OURS if model is Pipeline else frozenset()
    return {field.alias or name: field for name, field in model.model_fields.items() if name not in hidden}


def keys(model: type[Spec]) -> list[str]:
    """The keys that may stand in a mapping of that model, kinds among them."""
    own = list(fields(model))
    if issubclass(model, KindEntry):
        return [*model.kinds(), *(key for key in own if key != model.kind_field)]
    return own


def nearest(word: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """The known word most like this one, or None when none is near; `alike` is 1 for the same word."""
    plain = {_plain(other): other for other in known}
    found = difflib.get_close_matches(_plain(word), plain, n=1, cutoff=alike)
    return plain[found[0]] if found else None


def _plain(word: str) -> str:
    """A word without what spellings differ in: case, dashes, underscores."""
    return word.lower().replace("_", "").replace("-", "")


def model_at(path: Iterable[str | int]) -> type[Spec] | None:
    """The model whose keys stand directly in the mapping at a place, or None where keys are free."""
    kinds = types_at(path)
    # One sink may stand where a list of them is meant.
    items = [item for kind in kinds if get_origin(kind) is tuple for item in flatten(get_args(kind)[0])]
    return next(
        (kind for kind in [*kinds, *items] if isinstance(kind, type) and issubclass(kind, Spec)), None
    )


def secret_at(path: Iterable[str | int]) -> bool:
    """Must the value at a place be hidden?"""
    return any(isinstance(kind, type) and issubclass(kind, Secret) for kind in types_at(path))


def field_at(path: tuple[str | int, ...]) -> FieldInfo | None:
    """The field whose value stands at a place, with its description, or None where keys are free."""
    if not path:
        return None
    model = model_at(path[:-1])
    return fields(documented(model)).get(str(path[-1])) if model else None


def types_at(path: Iterable[str | int]) -> list[Any]:
    """The types a value at a place may have, unions taken apart."""
    here: list[Any] = [Pipeline]
    for step in path:
        here = [inner for kind in here for inner in _inside(kind, step)]
    return here


def _inside(kind: Any, step: str | int) -> Iterator[Any]:
    """The types one step further in."""
    if isinstance(kind, type) and issubclass(kind, Spec):
        if issubclass(kind, KindEntry) and step in kind.kinds():
            yield kind.kinds()[str(step)]
        elif step in (known := fields(kind)):
            yield from flatten(known[str(step)].annotation)
            yield from (item for item in known[str(step)].metadata if isinstance(item, type))
        return
    origin, inner = get_origin(kind), get_args(kind)
    if origin is dict and len(inner) == 2:
        yield from flatten(inner[1])
    elif origin in (tuple, list, frozenset, set) and inner:
        for item in flatten(inner[0]):
            yield from (item,) if isinstance(step, int) else _inside(item, step)


def flatten(annotation: Any) -> Iterator[Any]:
    """The alternatives of an annotation: `str | None` gives both."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from flatten(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for part in get_args(annotation):
            yield from flatten(part)
    else:
        yield annotation
