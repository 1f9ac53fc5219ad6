"""Spark's checkpoint folder read as values, and the project's own record beside it; needs no Spark."""
