"""Sink that passes rows to a user's function or class, in tasks."""
