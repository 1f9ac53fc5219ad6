"""Commits to a Delta table: its log, the lock on a local disk, and appends with a batch id."""
