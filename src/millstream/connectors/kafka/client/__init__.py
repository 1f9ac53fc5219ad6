"""Kafka clients: the broker's address, security, options, topics, and partition ends."""
