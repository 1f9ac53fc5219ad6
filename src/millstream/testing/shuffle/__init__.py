"""Run a test in other batch splits, compare each final result with the batch result, and shrink failures."""
