"""Rows that are generated for the sources of a query, from their columns and from what the query asks of them."""
