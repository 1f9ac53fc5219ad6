"""Read the first rows of files without Spark, to infer a schema from them."""
