"""Event-time tests: feed rows in and out of order, and check the output of each batch. See docs/architecture.md."""
