"""The command `dev`: check, tests and rows after each save."""
