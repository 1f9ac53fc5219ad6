"""Spark's checks at the start of a query, by output mode, trigger and sink, and its error messages."""
