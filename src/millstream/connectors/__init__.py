"""Connectors, one folder per system. Code outside names no kind, but uses the base classes."""
