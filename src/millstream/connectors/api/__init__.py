"""Base classes of sources and sinks, and the values that they share."""
