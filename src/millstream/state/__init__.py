"""Read the state of a query's checkpoint through Spark's state data source."""
