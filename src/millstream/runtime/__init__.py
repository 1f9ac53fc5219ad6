"""The only room that starts Spark: session, DataFrames, supervisor, failures, progress."""
