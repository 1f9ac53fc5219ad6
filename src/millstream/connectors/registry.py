"""Find every connector kind by walking the connector folders; nothing registers itself."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TypeVar

import millstream.connectors as home
from millstream.connectors.api.dead_letters import DeadLetterStore
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.source import Source
from millstream.connectors.api.system import System

Kind = TypeVar("Kind", bound=type)


@cache
def sources() -> dict[str, type[Source]]:
    """Source kinds by their key in a spec, in alphabetical order."""
    return _find_kinds("source", Source)


@cache
def sinks() -> dict[str, type[Sink]]:
    """Sink kinds by their key in a spec, in alphabetical order."""
    return _find_kinds("sink", Sink)


@cache
def dead_letter_stores() -> dict[str, type[DeadLetterStore]]:
    """Dead-letter stores by their key in a spec, in alphabetical order."""
    return _find_kinds("dead_letters", DeadLetterStore)


def default_dead_letter_store() -> type[DeadLetterStore]:
    """Return the store for dead letters given as a plain path."""
    return next(kind for kind in dead_letter_stores().values() if kind.is_default)


@cache
def systems() -> dict[str, System]:
    """Systems of all kinds by their connector folder, in alphabetical order."""
    kinds: list[type[Source] | type[Sink]] = [*sources().values(), *sinks().values()]
    return dict(sorted((connector_folder(kind), kind.system) for kind in kinds if kind.system != System()))


def connector_folder(kind: type) -> str:
    """Return the connector folder of a kind: `kafka` for both Kafka kinds."""
    return kind.__module__.split(".")[-2]


def _find_kinds(module: str, base: Kind) -> dict[str, Kind]:
    """Return the subclasses of `base` with a `kind`, from the module of that name in each folder."""
    kinds: dict[str, Kind] = {}
    for entry in pkgutil.iter_modules(home.__path__):
        if not entry.ispkg:
            continue
        package = importlib.import_module(f"{home.__name__}.{entry.name}")
        names = {part.name for part in pkgutil.iter_modules(package.__path__)}
        if module not in names:
            continue
        connector_module = importlib.import_module(f"{package.__name__}.{module}")
        for value in vars(connector_module).values():
            if isinstance(value, type) and issubclass(value, base) and "kind" in vars(value):
                kinds[value.kind] = value  # type: ignore[attr-defined, assignment]
    return dict(sorted(kinds.items()))
