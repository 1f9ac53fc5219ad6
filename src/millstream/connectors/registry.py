"""Finds every kind by walking the connector folders; nothing registers itself."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TypeVar

import millstream.connectors as home
from millstream.connectors.letters import Box
from millstream.connectors.sink import Sink
from millstream.connectors.source import Source

Kind = TypeVar("Kind", bound=type)


@cache
def sources() -> dict[str, type[Source]]:
    """Source kinds by their key in a spec, in alphabetical order."""
    return _walk("source", Source)


@cache
def sinks() -> dict[str, type[Sink]]:
    """Sink kinds by their key in a spec, in alphabetical order."""
    return _walk("sink", Sink)


@cache
def boxes() -> dict[str, type[Box]]:
    """Places that keep dead letters, by their key in a spec, in alphabetical order."""
    return _walk("letters", Box)


def plain_box() -> type[Box]:
    """The one that a bare path means."""
    return next(kind for kind in boxes().values() if kind.plain)


def folder(kind: type) -> str:
    """The connector folder that a kind stands in: `kafka` for both Kafka kinds."""
    return kind.__module__.split(".")[-2]


def _walk(module: str, base: Kind) -> dict[str, Kind]:
    """The classes of `base` that have a `kind`, in each folder's module of that name."""
    found: dict[str, Kind] = {}
    for entry in pkgutil.iter_modules(home.__path__):
        if not entry.ispkg:
            continue
        package = importlib.import_module(f"{home.__name__}.{entry.name}")
        names = {part.name for part in pkgutil.iter_modules(package.__path__)}
        if module not in names:
            continue
        inside = importlib.import_module(f"{package.__name__}.{module}")
        for value in vars(inside).values():
            if isinstance(value, type) and issubclass(value, base) and "kind" in vars(value):
                found[value.kind] = value  # type: ignore[attr-defined, assignment]
    return dict(sorted(found.items()))
