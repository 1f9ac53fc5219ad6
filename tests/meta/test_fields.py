"""Every setting tells what it is for, where it stands."""

from __future__ import annotations

import pytest

from millstream.connectors import registry
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.source import Source
from millstream.pipeline.introspection import fields_by_key, split_union
from millstream.pipeline.model import Pipeline
from millstream.spec.base import Spec
from millstream.spec.field_docs import with_field_docs

KINDS: list[type[Spec]] = [*registry.sources().values(), *registry.sinks().values()]


def within(one: type[Spec], found: list[type[Spec]]) -> list[type[Spec]]:
    """A model and those that its fields hold."""
    found.append(one)
    for field in fields_by_key(one).values():
        waiting = list(split_union(field.annotation))
        while waiting:
            part = waiting.pop()
            waiting += [
                inner for argument in getattr(part, "__args__", ()) for inner in split_union(argument)
            ]
            if isinstance(part, type) and issubclass(part, Spec) and part not in (*found, Source, Sink):
                within(part, found)
    return found


MODELS = list(dict.fromkeys(model for root in (Pipeline, *KINDS) for model in within(root, [])))


@pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: f"{model.__module__.split('.')[-2]}.{model.__name__}"
)
def test_every_field_has_a_description(model: type[Spec]) -> None:
    field_infos = fields_by_key(with_field_docs(model))

    assert [name for name, field in field_infos.items() if not (field.description or "").strip()] == []


@pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: f"{model.__module__.split('.')[-2]}.{model.__name__}"
)
def test_every_model_has_a_sentence_of_its_own(model: type[Spec]) -> None:
    assert (model.__dict__.get("__doc__") or "").strip()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__module__.split('.')[-1]}-{kind.kind}")
def test_the_field_that_a_bare_value_stands_for_exists(kind: type[Source] | type[Sink]) -> None:
    assert kind.main in fields_by_key(kind)
