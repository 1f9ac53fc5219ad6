"""Millstream: Spark Structured Streaming pipelines, declared, checked, run exactly-once and seen live."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The Python API (`declare`, `sink`, `display`) and a function for each kind, loaded when first asked for."""
    if name.startswith("_"):
        raise AttributeError(f"module 'millstream' has no attribute '{name}'")
    if name == "display":
        return import_module("millstream.notebook.display").display
    # By name: `import millstream` stays fast, and what takes the version from here knows nothing of these.
    registry = import_module("millstream.connectors.registry")
    api = import_module("millstream.pipeline.api")
    if name in api.__all__:
        return getattr(api, name)
    if name in registry.sources() or name in registry.sinks():
        return api.settings(name)
    raise AttributeError(f"module 'millstream' has no attribute '{name}'")
