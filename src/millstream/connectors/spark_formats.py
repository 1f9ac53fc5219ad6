"""Names of Spark's own formats, as its readers, writers and SQL spell them, whatever kinds of connectors exist."""

from __future__ import annotations

FILE_METHODS = ("json", "csv", "parquet", "orc", "text", "xml")
"""File formats for which there is a method in Spark's readers and writers."""

FILES = frozenset({*FILE_METHODS, "avro", "binaryfile"})
"""File formats that Spark itself reads, in lower case."""

WRITABLE_FILES = FILES - {"binaryfile"}
"""File formats that Spark itself writes."""

DEFAULT = "parquet"
"""Format of a reader or a writer without one."""

DELTA = "delta"
KAFKA = "kafka"
MEMORY = "memory"
NOOP = "noop"

STORE_NOTHING = frozenset({"console", MEMORY, NOOP})
"""Formats whose rows are gone when the process ends."""
