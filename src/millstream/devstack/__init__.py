"""The local development stack: a real Kafka broker, a real PostgreSQL server, and generated traffic."""
