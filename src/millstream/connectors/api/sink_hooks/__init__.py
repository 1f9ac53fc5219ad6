"""Hooks of a sink, one file for each part of the package that asks; all have defaults."""
