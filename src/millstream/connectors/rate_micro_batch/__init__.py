"""Spark's rate-micro-batch source: a fixed number of generated rows per batch."""
