"""Tests generated for the queries of a pipeline: generated rows, and those that a batch run gives for them."""
