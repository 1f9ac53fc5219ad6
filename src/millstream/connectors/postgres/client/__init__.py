"""Connections to PostgreSQL: addresses, identifiers, errors."""
