"""Pipelines not written here: a PySpark script or a declarative-pipelines project, checked as it is."""
