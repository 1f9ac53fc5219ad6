"""Topics of a Kafka broker, as source and sink."""
