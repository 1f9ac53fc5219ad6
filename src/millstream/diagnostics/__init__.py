"""Findings, their positions and their output formats. Independent of pipelines and Spark."""
