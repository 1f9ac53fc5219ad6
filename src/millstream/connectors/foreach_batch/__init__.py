"""Batches handed to a function of the user."""
