"""Kafka source, sink and dead-letter store."""
