"""The command `prove`, the driver process that it kills, and its faults."""
