"""Find, parse and write test files."""
