"""Check a spec, a script or a project with the rules, Spark's own analysis and, on request, external systems."""
