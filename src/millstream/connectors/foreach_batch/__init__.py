"""Sink that passes batches to a user's function."""
