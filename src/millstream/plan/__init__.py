"""Compare a changed pipeline with an existing checkpoint, and judge what a restart would do. No Spark."""
