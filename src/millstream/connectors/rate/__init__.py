"""Spark's rate source: rows made from the clock."""
