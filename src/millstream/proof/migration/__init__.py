"""A script and the project that was written from it, run over the same rows, and their tables compared."""
