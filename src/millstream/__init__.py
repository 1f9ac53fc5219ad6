"""Millstream: declare, check, run exactly-once and watch Spark Structured Streaming pipelines."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load the Python API (`declare`, `sink`, `display`) and a function for each kind on first use."""
    if name.startswith("_"):
        raise AttributeError(f"module 'millstream' has no attribute '{name}'")
    if name == "display":
        return import_module("millstream.notebook.display").display
    # Imported by name, so that `import millstream` stays fast and reading the version does not load these modules.
    registry = import_module("millstream.connectors.registry")
    api = import_module("millstream.pipeline.api")
    if name in api.__all__:
        return getattr(api, name)
    if name in registry.sources() or name in registry.sinks():
        return api.settings(name)
    raise AttributeError(f"module 'millstream' has no attribute '{name}'")
