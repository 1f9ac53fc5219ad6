"""Values of rows in tests: types, equality, timestamps, formatting."""
