"""Hooks of a source, one file for each part of the package that asks; all have defaults."""
