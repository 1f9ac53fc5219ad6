"""The commands `run`, `show` and `demo`, and the display of a run."""
