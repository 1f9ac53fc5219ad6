"""Batches printed as tables."""
