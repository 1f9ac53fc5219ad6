"""Kills a pipeline at any point, starts it again, and compares its sinks with a batch run of the same spec."""
