"""The servers of the local stack: a Kafka broker and a PostgreSQL server."""
