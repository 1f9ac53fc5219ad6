"""Event-time tests: what arrives, how late, what must come out. The room waits; see docs/house.md."""
