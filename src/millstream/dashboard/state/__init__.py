"""Compute the state that the page shows from the events of a run."""
