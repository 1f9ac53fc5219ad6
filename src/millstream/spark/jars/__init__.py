"""The jars that Spark and the local broker need: fetched by a lock file, verified, kept in a cache."""
