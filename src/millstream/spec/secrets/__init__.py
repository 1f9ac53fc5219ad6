"""Secrets, their redaction, and the variables that contain them."""
