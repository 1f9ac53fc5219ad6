"""The live page of a run. The room waits; see docs/house.md."""
