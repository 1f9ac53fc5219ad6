"""Run a script's files: what they are, what they import, and statements that have no result in a check."""
