"""The command `check`, and its watch mode."""
