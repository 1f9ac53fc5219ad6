"""Tables of Spark's catalog, whatever their format."""
