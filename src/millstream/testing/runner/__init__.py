"""Run test cases, compare rows, report failures."""
