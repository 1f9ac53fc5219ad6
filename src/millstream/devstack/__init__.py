"""The local stack: a real Kafka broker, a real PostgreSQL, and generated traffic."""
