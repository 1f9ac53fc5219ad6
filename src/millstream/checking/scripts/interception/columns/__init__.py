"""Columns of which a check knows only the names."""
