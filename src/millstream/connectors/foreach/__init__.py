"""Rows handed to a function or class of the user, in tasks."""
