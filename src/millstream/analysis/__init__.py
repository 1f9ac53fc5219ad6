"""What can be said of a pipeline without Spark: the rules, each with its page, and the guarantees."""
