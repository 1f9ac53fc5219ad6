"""Prove a pipeline: kill it at any point, restart it, and compare its sinks with a batch run of the same spec."""
