"""Convert Avro schemas to columns, and encode values in Avro's binary form."""
