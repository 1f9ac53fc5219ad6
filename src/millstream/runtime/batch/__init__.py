"""The batch answer of a pipeline, and what a sink has against it."""
