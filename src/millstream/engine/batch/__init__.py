"""Compute the batch result of a pipeline and compare a sink with it."""
