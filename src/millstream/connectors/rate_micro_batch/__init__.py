"""Spark's source of equal batches."""
