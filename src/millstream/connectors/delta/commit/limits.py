"""The sizes up to which a batch is merged without Spark. `benchmarks/small_merge.py` shows where Spark is cheaper."""

SMALL_BATCH = 10_000
"""Rows of a batch."""
SMALL_TABLE = 64 << 20
"""Bytes of a table."""
