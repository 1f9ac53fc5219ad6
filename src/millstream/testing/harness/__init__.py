"""Run queries batch by batch under a manual clock, with in-memory sources and readable sinks."""
