"""A table in the driver, for learning and tests."""
