"""Spark's rate source: rows generated from the clock."""
