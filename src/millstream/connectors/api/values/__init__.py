"""Values that sources and sinks return or receive."""
