"""Tests generated for the queries of a pipeline: made-up rows, and those that a batch run gives for them."""
