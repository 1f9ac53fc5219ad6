"""Sink that stores a table in the driver, for learning and tests."""
