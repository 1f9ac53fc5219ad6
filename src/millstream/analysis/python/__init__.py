"""Analysis of the source code of user functions."""
