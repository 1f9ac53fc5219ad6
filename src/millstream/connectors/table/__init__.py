"""Source for tables of Spark's catalog, in any format."""
