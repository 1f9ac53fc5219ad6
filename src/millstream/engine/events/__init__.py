"""Events of a run, their texts, and Spark's progress reports."""
