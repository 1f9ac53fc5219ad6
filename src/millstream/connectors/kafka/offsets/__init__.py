"""Offset ranges: splitting, limits, and offsets that the broker has deleted."""
