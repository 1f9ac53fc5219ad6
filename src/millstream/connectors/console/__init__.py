"""Sink that prints batches as tables."""
