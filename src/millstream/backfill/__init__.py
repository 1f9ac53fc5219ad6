"""Recompute a spec over old data in one bounded batch run, and compare the stream's tables with its result."""
